// Compiled once per instruction set with DTRAIN_ISA naming the namespace: see CMakeLists.txt.
#include "kernels.hpp"

#include "kernel_depthwise.hpp"
#include "kernel_elementwise.hpp"
#include "kernel_layer_norm.hpp"
#include "kernel_matrix.hpp"
#include "kernel_norm.hpp"
#include "kernel_pool.hpp"
#include "kernel_taps.hpp"

namespace dtrain::backend::cpu::DTRAIN_ISA {
namespace {

// NaN stays NaN.
inline double cut(double gradient, double most) {
  const double high = gradient > most ? most : gradient;
  return high < -most ? -most : high;
}

// The rules of dtrain/nn/optimizer.hpp, one weight at a time in double; the compiler makes vectors of the loops.
void sgd(const StepNumbers& s, const float* __restrict gradient, float* __restrict weight, float* __restrict momentum,
         int64_t count) {
  const StepNumbers n = s;
  for (int64_t k = 0; k < count; ++k) {
    const double g = n.factor * cut(gradient[k] / n.count, n.most) + n.decay * weight[k];
    momentum[k] = (float)(n.momentum * momentum[k] - n.rate * g);
    weight[k] += momentum[k];
  }
}

void nag(const StepNumbers& s, const float* __restrict gradient, float* __restrict weight, float* __restrict momentum,
         int64_t count) {
  const StepNumbers n = s;
  for (int64_t k = 0; k < count; ++k) {
    const double g = n.factor * cut(gradient[k] / n.count, n.most) + n.decay * weight[k];
    momentum[k] = (float)(n.momentum * momentum[k] + g);
    weight[k] = (float)(weight[k] - n.rate * (g + n.momentum * momentum[k]));
  }
}

void adam(const StepNumbers& s, const float* __restrict gradient, float* __restrict weight, float* __restrict mean,
          float* __restrict square, int64_t count) {
  const StepNumbers n = s;
  const double rate = n.factor * n.rate * __builtin_sqrt(n.correction2) / n.correction1;
  for (int64_t k = 0; k < count; ++k) {
    const double g = cut(gradient[k] / n.count, n.most) + n.decay * weight[k];
    mean[k] = (float)(n.beta1 * mean[k] + (1 - n.beta1) * g);
    square[k] = (float)(n.beta2 * square[k] + (1 - n.beta2) * g * g);
    weight[k] = (float)(weight[k] - rate * mean[k] / (__builtin_sqrt((double)square[k]) + n.epsilon));
  }
}

void adamw(const StepNumbers& s, const float* __restrict gradient, float* __restrict weight, float* __restrict mean,
           float* __restrict square, int64_t count) {
  const StepNumbers n = s;
  for (int64_t k = 0; k < count; ++k) {
    const double g = cut(gradient[k] / n.count, n.most);
    mean[k] = (float)(n.beta1 * mean[k] + (1 - n.beta1) * g);
    square[k] = (float)(n.beta2 * square[k] + (1 - n.beta2) * g * g);
    const double direction = mean[k] / n.correction1 / (__builtin_sqrt(square[k] / n.correction2) + n.epsilon);
    weight[k] = (float)(weight[k] - n.rate * (n.factor * direction + n.decay * weight[k]));
  }
}

void rmsprop(const StepNumbers& s, const float* __restrict gradient, float* __restrict weight, float* __restrict square,
             int64_t count) {
  const StepNumbers n = s;
  for (int64_t k = 0; k < count; ++k) {
    const double g = cut(gradient[k] / n.count, n.most) + n.decay * weight[k];
    square[k] = (float)(n.beta2 * square[k] + (1 - n.beta2) * g * g);
    weight[k] = (float)(weight[k] - n.factor * n.rate * g / __builtin_sqrt(square[k] + n.epsilon));
  }
}

void adagrad(const StepNumbers& s, const float* __restrict gradient, float* __restrict weight, float* __restrict square,
             int64_t count) {
  const StepNumbers n = s;
  for (int64_t k = 0; k < count; ++k) {
    const double g = cut(gradient[k] / n.count, n.most);
    square[k] = (float)(square[k] + g * g);
    const double direction = n.factor * g / __builtin_sqrt(square[k] + n.epsilon);
    weight[k] = (float)(weight[k] - n.rate * (direction + n.decay * weight[k]));
  }
}

void adamax(const StepNumbers& s, const float* __restrict gradient, float* __restrict weight, float* __restrict mean,
            float* __restrict largest, int64_t count) {
  const StepNumbers n = s;
  const double rate = n.factor * n.rate / n.correction1;
  for (int64_t k = 0; k < count; ++k) {
    const double g = cut(gradient[k] / n.count, n.most) + n.decay * weight[k];
    const double size = (g < 0 ? -g : g) + n.epsilon, before = n.beta2 * largest[k];
    mean[k] = (float)(n.beta1 * mean[k] + (1 - n.beta1) * g);
    largest[k] = (float)(before > size ? before : size);
    weight[k] = (float)(weight[k] - rate * mean[k] / largest[k]);
  }
}

void nadam(const StepNumbers& s, const float* __restrict gradient, float* __restrict weight, float* __restrict mean,
           float* __restrict square, int64_t count) {
  const StepNumbers n = s;
  for (int64_t k = 0; k < count; ++k) {
    const double g = cut(gradient[k] / n.count, n.most) + n.decay * weight[k];
    mean[k] = (float)(n.beta1 * mean[k] + (1 - n.beta1) * g);
    square[k] = (float)(n.beta2 * square[k] + (1 - n.beta2) * g * g);
    const double direction = n.of_gradient * g + n.of_mean * mean[k];
    weight[k] =
        (float)(weight[k] - n.factor * n.rate * direction / (__builtin_sqrt(square[k] / n.correction2) + n.epsilon));
  }
}

void adadelta(const StepNumbers& s, const float* __restrict gradient, float* __restrict weight,
              float* __restrict square, float* __restrict moved, int64_t count) {
  const StepNumbers n = s;
  for (int64_t k = 0; k < count; ++k) {
    const double g = cut(gradient[k] / n.count, n.most) + n.decay * weight[k];
    square[k] = (float)(n.beta2 * square[k] + (1 - n.beta2) * g * g);
    const double step = __builtin_sqrt(moved[k] + n.epsilon) / __builtin_sqrt(square[k] + n.epsilon) * g;
    moved[k] = (float)(n.beta2 * moved[k] + (1 - n.beta2) * step * step);
    weight[k] = (float)(weight[k] - n.factor * n.rate * step);
  }
}

void signum(const StepNumbers& s, const float* __restrict gradient, float* __restrict weight,
            float* __restrict momentum, int64_t count) {
  const StepNumbers n = s;
  for (int64_t k = 0; k < count; ++k) {
    const double g = cut(gradient[k] / n.count, n.most) + n.decay * weight[k];
    momentum[k] = (float)(n.momentum * momentum[k] + (1 - n.momentum) * g);
    const double sign = momentum[k] > 0 ? 1.0 : momentum[k] < 0 ? -1.0 : 0.0;
    weight[k] = (float)(weight[k] - n.factor * n.rate * sign);
  }
}

void ftml(const StepNumbers& s, const float* __restrict gradient, float* __restrict weight, float* __restrict square,
          int64_t count) {
  const StepNumbers n = s;
  const double rate = n.factor * n.rate * (1 - n.beta1) / n.correction1;
  for (int64_t k = 0; k < count; ++k) {
    const double g = cut(gradient[k] / n.count, n.most) + n.decay * weight[k];
    square[k] = (float)(n.beta2 * square[k] + (1 - n.beta2) * g * g);
    weight[k] = (float)(weight[k] - rate * g / (__builtin_sqrt(square[k] / n.correction2) + n.epsilon));
  }
}

void lamb_direction(const StepNumbers& s, const float* __restrict gradient, const float* __restrict weight,
                    float* __restrict mean, float* __restrict square, float* __restrict direction, int64_t count) {
  const StepNumbers n = s;
  for (int64_t k = 0; k < count; ++k) {
    const double g = cut(gradient[k] / n.count, n.most);
    mean[k] = (float)(n.beta1 * mean[k] + (1 - n.beta1) * g);
    square[k] = (float)(n.beta2 * square[k] + (1 - n.beta2) * g * g);
    const double scaled = mean[k] / n.correction1 / (__builtin_sqrt(square[k] / n.correction2) + n.epsilon);
    direction[k] = (float)(scaled + n.decay * weight[k]);
  }
}

void lamb_step(const StepNumbers& s, const float* __restrict direction, float* __restrict weight, int64_t count) {
  const double rate = s.factor * s.rate;
  for (int64_t k = 0; k < count; ++k) weight[k] = (float)(weight[k] - rate * direction[k]);
}

void lars_direction(const StepNumbers& s, const float* __restrict gradient, float* __restrict direction,
                    int64_t count) {
  const StepNumbers n = s;
  for (int64_t k = 0; k < count; ++k) direction[k] = (float)cut(gradient[k] / n.count, n.most);
}

void move_average(double share, const float* __restrict value, float* __restrict average, int64_t count) {
  for (int64_t k = 0; k < count; ++k) average[k] = (float)(average[k] + share * ((double)value[k] - average[k]));
}

void muon_direction(const StepNumbers& s, const float* __restrict gradient, float* __restrict momentum,
                    float* __restrict direction, int64_t count) {
  const StepNumbers n = s;
  for (int64_t k = 0; k < count; ++k) {
    const double g = cut(gradient[k] / n.count, n.most);
    momentum[k] = (float)(n.momentum * momentum[k] + g);
    direction[k] = (float)(g + n.momentum * momentum[k]);
  }
}

void muon_step(const StepNumbers& s, double scale, const float* __restrict orthogonal, float* __restrict weight,
               int64_t count) {
  const StepNumbers n = s;
  for (int64_t k = 0; k < count; ++k) {
    const double w = scale * weight[k];
    weight[k] = (float)(w - n.rate * (orthogonal[k] + n.decay * w));
  }
}

void accumulate(const float* __restrict x, float* __restrict sum, int64_t count) {
  for (int64_t k = 0; k < count; ++k) sum[k] += x[k];
}

template <typename T>
constexpr TensorKernels tensor_kernels() {
  return {moments<T>,
          normalise<T>,
          norm_backward_sums<T>,
          norm_backward<T>,
          column_sums<T>,
          layer_norm<T>,
          layer_norm_backward<T>,
          add<T>,
          activate<T>,
          activate_backward<T>,
          multiply<T>,
          shift<T>,
          scale<T>,
          scale_columns<T>,
          column_products<T>,
          pool<T>,
          pool_backward<T>,
          depthwise_weights<T>,
          load_image<T>,
          to_planes<T>,
          from_planes<T>,
          gather<T>,
          to_float<T>,
          from_float<T>};
}

}  // namespace

extern const Kernels kKernels;
const Kernels kKernels = {DTRAIN_ISA_NAME,
                          tensor_kernels<float>(),
                          tensor_kernels<Bfloat16>(),
                          sgd,
                          nag,
                          adam,
                          adamw,
                          rmsprop,
                          adagrad,
                          adamax,
                          nadam,
                          adadelta,
                          signum,
                          ftml,
                          lamb_direction,
                          lamb_step,
                          lars_direction,
                          move_average,
                          muon_direction,
                          muon_step,
                          accumulate,
                          scatter,
                          sum_of_squares,
                          softmax_rows,
                          softmax_rows_backward,
                          product_panel};

}  // namespace dtrain::backend::cpu::DTRAIN_ISA
