/* The scheme of training/cfd as straightforward loops over cells and faces: what `make phases` sets the numpy solver
   beside. Arrays hold two ghosts on every side, fields outermost; a box is periodic in all directions. */
#include <math.h>
#include <stdint.h>
#include <string.h>

enum { N = 5, G = 2 };
static const double GAMMA = 1.4;

typedef struct { int64_t nx, ny, nz, sx, sy, cells; } Box;

static inline double larger(double a, double b) { return a > b ? a : b; }

static void wrap(double *q, Box b) {
  for (int k = 0; k < N; k++) {
    double *f = q + k * b.cells;
    for (int64_t x = G; x < b.nx + G; x++) {
      for (int64_t y = G; y < b.ny + G; y++) {
        double *row = f + x * b.sx + y * b.sy;
        for (int64_t z = 0; z < G; z++) {
          row[z] = row[b.nz + z];
          row[b.nz + G + z] = row[G + z];
        }
      }
      double *plane = f + x * b.sx;
      memcpy(plane, plane + b.ny * b.sy, sizeof(double) * G * b.sy);
      memcpy(plane + (b.ny + G) * b.sy, plane + G * b.sy, sizeof(double) * G * b.sy);
    }
    memcpy(f, f + b.nx * b.sx, sizeof(double) * G * b.sx);
    memcpy(f + (b.nx + G) * b.sx, f + G * b.sx, sizeof(double) * G * b.sx);
  }
}

static void primitive(const double *restrict q, double *restrict w, double *restrict sound, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    double rho = q[i], inverse = 1 / rho;
    double u = q[n + i] * inverse, v = q[2 * n + i] * inverse, s = q[3 * n + i] * inverse;
    double p = (GAMMA - 1) * (q[4 * n + i] - 0.5 * (q[n + i] * u + q[2 * n + i] * v + q[3 * n + i] * s));
    w[i] = rho, w[n + i] = u, w[2 * n + i] = v, w[3 * n + i] = s, w[4 * n + i] = p;
    sound[i] = sqrt(GAMMA * (p * inverse));
  }
}

static inline void side(const double *w, int axis, double *u, double *f) {
  double normal = w[1 + axis];
  u[0] = w[0];
  for (int k = 1; k < 4; k++) u[k] = w[0] * w[k];
  u[4] = w[4] * (1 / (GAMMA - 1)) + 0.5 * (u[1] * w[1] + u[2] * w[2] + u[3] * w[3]);
  for (int k = 0; k < N; k++) f[k] = u[k] * normal;
  f[1 + axis] += w[4];
  f[4] += w[4] * normal;
}

/* Twice the flux through the face between cell i and the next one along an axis. */
static inline void flux(const double *w, const double *sound, int64_t n, int64_t i, int64_t step, int axis, double *f) {
  double left[N], right[N], ul[N], ur[N], fl[N], fr[N];
  for (int k = 0; k < N; k++) {
    const double *a = w + k * n + i;
    left[k] = a[0] + 0.25 * (a[step] - a[-step]);
    right[k] = a[step] - 0.25 * (a[2 * step] - a[0]);
  }
  side(left, axis, ul, fl);
  side(right, axis, ur, fr);
  const double *normal = w + (1 + axis) * n;
  double speed = larger(fabs(normal[i]) + sound[i], fabs(normal[i + step]) + sound[i + step]);
  for (int k = 0; k < N; k++) f[k] = fl[k] + fr[k] - speed * (ur[k] - ul[k]);
}

/* change = scale * (what flows in - what flows out), of every own cell; each face once. */
static void net(const double *restrict w, const double *restrict sound, double *restrict change, Box b, double scale) {
  int64_t steps[3] = {b.sx, b.sy, 1};
  memset(change, 0, sizeof(double) * N * b.cells);
  for (int axis = 0; axis < 3; axis++)
    for (int64_t x = axis == 0 ? G - 1 : G; x < b.nx + G; x++)
      for (int64_t y = axis == 1 ? G - 1 : G; y < b.ny + G; y++)
        for (int64_t z = axis == 2 ? G - 1 : G; z < b.nz + G; z++) {
          double f[N];
          int64_t i = x * b.sx + y * b.sy + z;
          flux(w, sound, b.cells, i, steps[axis], axis, f);
          for (int k = 0; k < N; k++) {
            change[k * b.cells + i] -= scale * f[k];
            change[k * b.cells + i + steps[axis]] += scale * f[k];
          }
        }
}

/* `count` steps of `state`, with room of its size for `stage`, `w` and `change`, and of a field for `sound`; the sums of
   the squared changes of the first stage go to `sums`. */
void euler_steps(double *state, double *stage, double *w, double *sound, double *change, int64_t nx, int64_t ny,
                 int64_t nz, double scale, int64_t count, double *sums) {
  Box b = {nx, ny, nz, (ny + 2 * G) * (nz + 2 * G), nz + 2 * G, (nx + 2 * G) * (ny + 2 * G) * (nz + 2 * G)};
  for (int64_t step = 0; step < count; step++)
    for (int part = 0; part < 2; part++) {
      double *source = part ? stage : state;
      wrap(source, b);
      primitive(source, w, sound, b.cells);
      net(w, sound, change, b, scale / 2);
      for (int k = 0; k < N; k++) {
        double sum = 0;
        for (int64_t x = G; x < nx + G; x++)
          for (int64_t y = G; y < ny + G; y++)
            for (int64_t z = G; z < nz + G; z++) {
              int64_t i = k * b.cells + x * b.sx + y * b.sy + z;
              if (part == 0) {
                stage[i] = state[i] + change[i];
                sum += change[i] * change[i];
              } else {
                state[i] = 0.5 * (state[i] + stage[i] + change[i]);
              }
            }
        if (part == 0) sums[k] = sum;
      }
    }
}
