#include "layers.hpp"

namespace dtrain::backend::reference {

void add(const Samples& a, const Samples& b, Samples& y) {
  for (std::size_t k = 0; k < y.values.size(); ++k) y.values[k] = a.values[k] + b.values[k];
}

void add_backward(const Samples& dy, Samples& dx) {
  for (std::size_t k = 0; k < dy.values.size(); ++k) dx.values[k] += dy.values[k];
}

void scale(const nn::Scale& layer, const Samples& x, Samples& y) {
  for (std::size_t k = 0; k < x.values.size(); ++k) y.values[k] = layer.factor * x.values[k];
}

void scale_backward(const nn::Scale& layer, const Samples& dy, Samples& dx) {
  for (std::size_t k = 0; k < dy.values.size(); ++k) dx.values[k] += layer.factor * dy.values[k];
}

}  // namespace dtrain::backend::reference
