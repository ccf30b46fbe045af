// Vaswani et al. 2017, equation 1.
#include <algorithm>
#include <cmath>

#include "exponential.hpp"
#include "layers.hpp"

namespace dtrain::backend::reference {
namespace {

using AttentionMatrix = std::vector<double>;  // [tokens][tokens]

// One head of one sample: queries, keys and values are planes of tokens, one for each of its channels.
struct Head {
  std::int64_t tokens;
  int channels;
  std::int64_t query, key, value, output;  // where its planes begin in a sample

  Head(const nn::Attention& layer, const Samples& x, int head)
      : tokens(std::int64_t{x.shape.h} * x.shape.w), channels(x.shape.c / 3 / layer.heads) {
    const std::int64_t width = std::int64_t{x.shape.c} / 3 * tokens;
    query = output = std::int64_t{head} * channels * tokens;
    key = query + width;
    value = key + width;
  }
  double factor() const { return 1 / std::sqrt(static_cast<double>(channels)); }
  std::size_t at(std::int64_t query_token, std::int64_t key_token) const {
    return static_cast<std::size_t>(query_token * tokens + key_token);
  }
  // Calls visit(channel's first value, query token, key token).
  template <typename Visit>
  void each(Visit visit) const {
    for (std::int64_t plane = 0; plane < channels * tokens; plane += tokens) {
      for (std::int64_t q = 0; q < tokens; ++q) {
        for (std::int64_t k = 0; k < tokens; ++k) visit(plane, q, k);
      }
    }
  }
};

AttentionMatrix shares_of_keys(const Head& head, const float* x) {
  AttentionMatrix p(static_cast<std::size_t>(head.tokens * head.tokens));
  head.each([&](std::int64_t plane, std::int64_t q, std::int64_t k) {
    p[head.at(q, k)] += static_cast<double>(x[head.query + plane + q]) * x[head.key + plane + k];
  });
  for (std::int64_t q = 0; q < head.tokens; ++q) {
    double* const row = p.data() + q * head.tokens;
    const double largest = *std::max_element(row, row + head.tokens);
    double sum = 0;
    for (std::int64_t k = 0; k < head.tokens; ++k) sum += row[k] = exponential((row[k] - largest) * head.factor());
    for (std::int64_t k = 0; k < head.tokens; ++k) row[k] /= sum;
  }
  return p;
}

template <typename Visit>
void each_head(const nn::Attention& layer, const Samples& x, Visit visit) {
  for (int i = 0; i < x.n; ++i) {
    for (int number = 0; number < layer.heads; ++number) {
      const Head head(layer, x, number);
      visit(i, head, shares_of_keys(head, x.sample(i)));
    }
  }
}

void add_sums(const std::vector<double>& sums, float* to) {
  for (std::size_t k = 0; k < sums.size(); ++k) to[k] += static_cast<float>(sums[k]);
}

}  // namespace

void attend(const nn::Attention& layer, const Samples& x, Samples& y) {
  std::fill(y.values.begin(), y.values.end(), 0.0f);
  each_head(layer, x, [&](int i, const Head& head, const AttentionMatrix& p) {
    std::vector<double> sums(static_cast<std::size_t>(head.channels * head.tokens));
    head.each([&](std::int64_t plane, std::int64_t q, std::int64_t k) {
      sums[static_cast<std::size_t>(plane + q)] += p[head.at(q, k)] * x.sample(i)[head.value + plane + k];
    });
    add_sums(sums, y.sample(i) + head.output);
  });
}

void attend_backward(const nn::Attention& layer, const Samples& x, const Samples& dy, Samples& dx) {
  each_head(layer, x, [&](int i, const Head& head, const AttentionMatrix& p) {
    const float *const from = x.sample(i), *const gradient = dy.sample(i) + head.output;
    const auto size = static_cast<std::size_t>(head.channels * head.tokens);
    std::vector<double> queries(size), keys(size), values(size);
    AttentionMatrix scores(p.size());
    head.each([&](std::int64_t plane, std::int64_t q, std::int64_t k) {
      values[static_cast<std::size_t>(plane + k)] += p[head.at(q, k)] * gradient[plane + q];
      scores[head.at(q, k)] += static_cast<double>(gradient[plane + q]) * from[head.value + plane + k];
    });
    for (std::int64_t q = 0; q < head.tokens; ++q) {
      double mean = 0;
      for (std::int64_t k = 0; k < head.tokens; ++k) mean += p[head.at(q, k)] * scores[head.at(q, k)];
      for (std::int64_t k = 0; k < head.tokens; ++k) {
        scores[head.at(q, k)] = p[head.at(q, k)] * (scores[head.at(q, k)] - mean) * head.factor();
      }
    }
    head.each([&](std::int64_t plane, std::int64_t q, std::int64_t k) {
      queries[static_cast<std::size_t>(plane + q)] += scores[head.at(q, k)] * from[head.key + plane + k];
      keys[static_cast<std::size_t>(plane + k)] += scores[head.at(q, k)] * from[head.query + plane + q];
    });
    add_sums(queries, dx.sample(i) + head.query);
    add_sums(keys, dx.sample(i) + head.key);
    add_sums(values, dx.sample(i) + head.value);
  });
}

}  // namespace dtrain::backend::reference
