"""What measured numbers mean beyond themselves: fitted costs, and what they say of jobs that were not run. Pure."""
