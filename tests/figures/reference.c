/* The reference of `make parity` and `make schedules`: the same calls, written directly against mpi.h and compiled with the MPI's own mpicc.
   Every function runs `iterations` of one benchmark and writes two stamps in ns per iteration. */
#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DATA = 1, ACK = 2, WINDOW = 64 };

static inline int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static MPI_Comm communicator(intptr_t handle) { return (MPI_Comm)handle; }

int pingpong(intptr_t comm, void *send, void *receive, int n, int rank, int iterations, int64_t *stamps) {
  MPI_Comm c = communicator(comm);
  MPI_Status status;
  for (int i = 0; i < iterations; i++) {
    *stamps++ = now_ns();
    if (rank == 0) {
      MPI_Send(send, n, MPI_BYTE, 1, DATA, c);
      MPI_Recv(receive, n, MPI_BYTE, 1, DATA, c, &status);
    } else {
      MPI_Recv(receive, n, MPI_BYTE, 0, DATA, c, &status);
      MPI_Send(send, n, MPI_BYTE, 0, DATA, c);
    }
    *stamps++ = now_ns();
  }
  return 0;
}

int window(intptr_t comm, void *send, void *receive, int n, int rank, int iterations, int64_t *stamps) {
  MPI_Comm c = communicator(comm);
  MPI_Request requests[WINDOW];
  MPI_Status statuses[WINDOW];
  static char ack[4];
  for (int i = 0; i < iterations; i++) {
    *stamps++ = now_ns();
    if (rank == 0) {
      for (int k = 0; k < WINDOW; k++) MPI_Isend(send, n, MPI_BYTE, 1, DATA, c, &requests[k]);
      MPI_Waitall(WINDOW, requests, statuses);
      MPI_Recv(ack, 4, MPI_BYTE, 1, ACK, c, statuses);
    } else {
      for (int k = 0; k < WINDOW; k++) MPI_Irecv(receive, n, MPI_BYTE, 0, DATA, c, &requests[k]);
      MPI_Waitall(WINDOW, requests, statuses);
      MPI_Send(ack, 4, MPI_BYTE, 0, ACK, c);
    }
    *stamps++ = now_ns();
  }
  return 0;
}

int allreduce(intptr_t comm, void *send, void *receive, int n, int rank, int iterations, int64_t *stamps) {
  MPI_Comm c = communicator(comm);
  (void)rank;
  for (int i = 0; i < iterations; i++) {
    MPI_Barrier(c);
    *stamps++ = now_ns();
    MPI_Allreduce(send, receive, n / 4, MPI_FLOAT, MPI_SUM, c);
    *stamps++ = now_ns();
  }
  return 0;
}

/* Allreduce round a ring: what arrives is added up, then the sums go round. */
int ring(intptr_t comm, void *send, void *receive, int n, int rank, int iterations, int64_t *stamps) {
  MPI_Comm c = communicator(comm);
  MPI_Status status;
  float *in = send, *out = receive;
  int ranks, count = n / 4;
  MPI_Comm_size(c, &ranks);
  int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
#define BEGIN(b) ((b) * (count / ranks) + ((b) < count % ranks ? (b) : count % ranks))
#define SIZE(b) (count / ranks + ((b) < count % ranks))
  for (int i = 0; i < iterations; i++) {
    MPI_Barrier(c);
    *stamps++ = now_ns();
    for (int step = 0; step < 2 * (ranks - 1); step++) {
      int adds = step < ranks - 1;
      int to = (rank - step + 2 * ranks) % ranks, from = (rank - step - 1 + 2 * ranks) % ranks;
      MPI_Sendrecv((step ? out : in) + BEGIN(to), SIZE(to), MPI_FLOAT, right, DATA, out + BEGIN(from), SIZE(from),
                   MPI_FLOAT, left, DATA, c, &status);
      if (adds) MPI_Reduce_local(in + BEGIN(from), out + BEGIN(from), SIZE(from), MPI_FLOAT, MPI_SUM);
    }
    *stamps++ = now_ns();
  }
  return 0;
}

/* Allreduce by recursive doubling, on a power of two of ranks. */
int doubling(intptr_t comm, void *send, void *receive, int n, int rank, int iterations, int64_t *stamps) {
  MPI_Comm c = communicator(comm);
  MPI_Status status;
  void *staging = malloc(n);
  int ranks, count = n / 4;
  MPI_Comm_size(c, &ranks);
  if (!staging) return 1;
  for (int i = 0; i < iterations; i++) {
    MPI_Barrier(c);
    *stamps++ = now_ns();
    memcpy(receive, send, n);
    for (int far = 1; far < ranks; far *= 2) {
      MPI_Sendrecv(receive, count, MPI_FLOAT, rank ^ far, DATA, staging, count, MPI_FLOAT, rank ^ far, DATA, c, &status);
      MPI_Reduce_local(staging, receive, count, MPI_FLOAT, MPI_SUM);
    }
    *stamps++ = now_ns();
  }
  free(staging);
  return 0;
}
