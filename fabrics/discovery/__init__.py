"""What this host has to send through, from sysfs: interfaces, RDMA ports and DPUs, and the fabrics they make."""
