/* Work that is measured by itself, outside programs of calls. Compiled without Python: microbench/kernels.py opens it
   with ctypes, which drops the interpreter's lock, so that threads run it side by side. */
#include <stdint.h>

/* STREAM's triad, a = b + s c, `passes` times over n doubles. The barrier keeps the passes apart. */
void fb_triad(double *restrict a, const double *restrict b, const double *restrict c, int64_t n, int64_t passes) {
  const double s = 3.0;
  for (int64_t p = 0; p < passes; p++) {
    for (int64_t i = 0; i < n; i++) a[i] = b[i] + s * c[i];
    __asm__ volatile("" : : "r"(a) : "memory");
  }
}
