/* The timed path of every benchmark. An iteration is a constant list of calls, and reading the clock is one of them.
   Compiled without MPI and without Python: functions, handles and buffers arrive as 64-bit words at run time, which
   is the calling rule of the 64-bit Linux ABIs and not of ISO C (microbench/engine.py refuses other platforms).
   A leaf call returns 0, or a negative errno, so that it cannot be taken for an MPI error class. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef intptr_t W;
typedef struct { void *fn; W n, a[14]; } Call;      /* fn(a[0], ..., a[n-1]), an int; 0 is success. 128 bytes */
typedef int F7(W, W, W, W, W, W, W);
typedef int F13(W, W, W, W, W, W, W, W, W, W, W, W, W);
typedef int Test(W request, int *flag, W status);
typedef int Iprobe(W source, W tag, W comm, int *flag, W *status);

/* at[0]: the call in progress, -1 when none is; at[1]: the iteration. A watchdog thread reads them. */
int fb_loop(const Call *calls, int64_t n, int64_t iterations, volatile int64_t *at) {
  for (int64_t i = 0; i < iterations; i++) {
    at[1] = i;
    for (int64_t k = 0; k < n; k++) {
      const W *a = calls[k].a;
      at[0] = k;
      int rc = calls[k].n <= 7
        ? ((F7 *)calls[k].fn)(a[0], a[1], a[2], a[3], a[4], a[5], a[6])
        : ((F13 *)calls[k].fn)(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12]);
      if (rc) return rc;
    }
  }
  at[0] = -1;
  return 0;
}

static inline int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* Write the time to *next and advance it. */
int fb_stamp(int64_t **next) {
  *(*next)++ = now_ns();
  return 0;
}

/* The same for the time that processors have spent on this process, all of its threads together. */
int fb_spent(int64_t **next) {
  struct timespec t;
  if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t)) return -errno;
  *(*next)++ = t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
  return 0;
}

/* Fixed work in registers: a chain of dependent multiply-adds that the compiler may neither drop nor shorten. */
int fb_work(int64_t steps) {
  uint64_t x = 1;
  for (int64_t i = 0; i < steps; i++) {
    x = x * UINT64_C(6364136223846793005) + 1;
    __asm__ volatile("" : "+r"(x));
  }
  return 0;
}

/* Fixed work on memory: add 1 to every word of a buffer, `passes` times. */
int fb_stream(volatile int64_t *words, int64_t n, int64_t passes) {
  for (int64_t p = 0; p < passes; p++)
    for (int64_t i = 0; i < n; i++) words[i] += 1;
  return 0;
}

/* Fixed work on memory that no cache holds: the same for the next `n` words of a ring of `size`, from *at on. */
int fb_roll(int64_t *words, int64_t size, int64_t *at, int64_t n) {
  while (n > 0) {
    int64_t part = size - *at < n ? size - *at : n;
    fb_stream(words + *at, part, 1);
    *at = (*at + part) % size;
    n -= part;
  }
  return 0;
}

/* Write one buffer's bytes into another: an input that an operation in place has overwritten. */
int fb_copy(void *to, const void *from, int64_t nbytes) {
  memcpy(to, from, (size_t)nbytes);
  return 0;
}

/* Sleep without burning the core. */
int fb_nap(int64_t ns) {
  struct timespec t = { ns / 1000000000, ns % 1000000000 };
  int rc;
  while ((rc = clock_nanosleep(CLOCK_MONOTONIC, 0, &t, &t)) == EINTR) {}
  return -rc;
}

/* Sleep for the next number of ns of a list, and advance to the one after: delays that were drawn before. */
int fb_lag(int64_t **next) {
  int64_t ns = *(*next)++;
  return ns > 0 ? fb_nap(ns) : 0;
}

/* *at = the time *slack_ns from now: the moment at which all ranks shall start. */
int fb_deadline(int64_t *at, const int64_t *slack_ns) {
  *at = now_ns() + *slack_ns;
  return 0;
}

/* Where this rank's clock stands at a global time: `offset + drift * (global - epoch)` ahead. */
typedef struct { int64_t epoch, offset; double drift; } Clock;

/* Spin until the global time *at, told by the local clock; write to *next, and advance it, how early the first look was:
   0 or less is late. */
int fb_wait_until(const int64_t *at, const Clock *clock, int64_t **next) {
  int64_t target = *at + clock->offset + (int64_t)(clock->drift * (double)(*at - clock->epoch));
  int64_t margin = target - now_ns();
  *(*next)++ = margin;
  if (margin > 0)
    while (now_ns() < target) {}
  return 0;
}

/* Call a test (MPI_Test) once: a probe, which makes progress and may or may not complete the request. */
int fb_probe(Test *test, W request, W status) {
  int done;
  return test(request, &done, status);
}

/* Test a request until it is done: `spins` times in a row, then sleep in poll() on the library's own descriptors for at
   most `cap_ms`, and again. With no descriptors and cap_ms 0 it spins. */
int fb_test_until(Test *test, W request, W status, int64_t spins, struct pollfd *fds, int64_t nfds, int64_t cap_ms) {
  for (int done = 0;;) {
    for (int64_t i = 0; i < spins; i++) {
      int rc = test(request, &done, status);
      if (rc || done) return rc;
    }
    if (cap_ms > 0 && poll(fds, (nfds_t)nfds, (int)cap_ms) < 0 && errno != EINTR) return -errno;
  }
}

/* Ring a bell that another process hears: 8 bytes into a pipe, which never fills up as every ring is heard. */
int fb_ring(int64_t pipe) {
  static const int64_t one = 1;
  ssize_t written;
  while ((written = write((int)pipe, &one, sizeof one)) < 0 && errno == EINTR) {}
  return written < 0 ? -errno : 0;
}

/* Wait until the bell at fds[0], a pipe, has been rung. Meanwhile MPI makes progress through `progress` (MPI_Iprobe for
   a message that never comes), which may be 0: what this rank has sent may still lie in the library. It sleeps in
   poll() on fds, of which the others are the library's own descriptors, for at most `cap_ms` at a time; with cap_ms 0
   it spins. -EPIPE where nobody is left to ring. */
int fb_hear(Iprobe *progress, W source, W tag, W comm, struct pollfd *fds, int64_t nfds, int64_t cap_ms) {
  for (;;) {
    int64_t rung;
    W status[8];
    int found;
    int ready = poll(fds, (nfds_t)nfds, (int)cap_ms);
    if (ready < 0 && errno != EINTR) return -errno;
    if (ready > 0 && fds[0].revents) {
      ssize_t got = read(fds[0].fd, &rung, sizeof rung);
      if (got > 0) return 0;
      if (got == 0) return -EPIPE;
      if (errno != EINTR && errno != EAGAIN) return -errno;
    }
    int rc = progress ? progress(source, tag, comm, &found, status) : 0;
    if (rc) return rc;
  }
}

/* Look at a word that another process writes. */
int fb_look(const volatile int64_t *word) {
  (void)*word;
  return 0;
}
