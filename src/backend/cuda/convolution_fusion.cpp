#include "convolution_fusion.hpp"

#include <cstddef>
#include <optional>
#include <utility>

namespace dtrain::backend::cuda {
namespace {

using Calls = std::vector<Call>;
using Fuses = std::function<bool(const Convolution&)>;

// NormFromBatch by the moments of all rows.
template <typename T>
NormFromBatch<T> by_moments(NormFromBatch<T> norm, const float* moments) {
  norm.sums = moments;
  norm.x = nullptr;
  norm.cut = {.rows = norm.cut.rows};
  return norm;
}

// What becomes of a convolution and of the call behind it, a norm's statistics of its result or all of a norm.
struct Fusion {
  Convolution convolution;
  std::vector<Work> norm;
};

template <typename T>
std::optional<Fusion> fused_with(Convolution convolution, const NormStatistics<T>& statistics) {
  if (statistics.sums.x != convolution.result) return std::nullopt;
  // Until backward fills them, the rows for the gradient's sums are free, and no other tensor ever lies there.
  convolution.moments = &statistics.finish.coefficients.gradient_mean(0);
  return Fusion{convolution, {by_moments(statistics.finish, convolution.moments)}};
}

template <typename T, bool Gelu, bool NormsResidual>
std::optional<Fusion> fused_with(Convolution convolution, const NormForward<T, Gelu, NormsResidual>& norm) {
  std::optional<Fusion> fusion = fused_with(std::move(convolution), norm.statistics);
  if (fusion) fusion->norm.emplace_back(norm.apply);
  return fusion;
}

std::optional<Fusion> fuse_at(const Calls& calls, std::size_t at) {
  const auto* const convolution = calls[at].work.get_if<Convolution>();
  if (!convolution || convolution->direction != Direction::forward || at + 1 >= calls.size()) return std::nullopt;
  return calls[at + 1].work.visit([&]<typename Next>(const Next& next) -> std::optional<Fusion> {
    if constexpr (requires { fused_with(*convolution, next); }) return fused_with(*convolution, next);
    return std::nullopt;
  });
}

// The factors that a norm's pass would compute by; null: no such pass. What else the call does goes to `rest`.
struct FactorsOf {
  std::optional<Work>& rest;
  template <typename T>
  const void* operator()(const NormApply<T>& apply) const {
    return apply.coefficients.template factors<T>();
  }
  template <typename T>
  const void* operator()(const NormForward<T>& norm) const {
    rest = norm.statistics;
    return (*this)(norm.apply);
  }
  template <typename Other>
  const void* operator()(const Other&) const {
    return nullptr;
  }
};

using Readers = std::vector<std::pair<std::size_t, Convolution>>;

// The convolutions of what a norm with these factors makes, fused with it; empty where one of them cannot be.
Readers fused_readers(const Calls& calls, const void* factors, const Fuses& fuses) {
  Readers readers;
  for (std::size_t at = 0; at < calls.size(); ++at) {
    const auto* const convolution = calls[at].work.get_if<Convolution>();
    if (!convolution || !convolution->normed.x || convolution->normed.factors != factors) continue;
    readers.emplace_back(at, *convolution);
    readers.back().second.normed.fused = true;
    if (!fuses(readers.back().second)) return {};
  }
  return readers;
}

// Leaves out the passes of norms that their readers compute themselves.
Calls without_passes(Calls calls, const Fuses& fuses) {
  Calls result;
  for (std::size_t at = 0; at < calls.size(); ++at) {
    std::optional<Work> rest;
    const void* const factors = calls[at].work.visit(FactorsOf{rest});
    const Readers readers = factors ? fused_readers(calls, factors, fuses) : Readers{};
    for (const auto& [reader, convolution] : readers) calls[reader].work = convolution;
    if (readers.empty()) {
      result.push_back(calls[at]);
    } else if (rest) {
      result.push_back({calls[at].name, *rest});
    }
  }
  return result;
}

}  // namespace

Calls fused(Calls calls, const Fuses& fuses) {
  Calls result;
  for (std::size_t at = 0; at < calls.size();) {
    const std::optional<Fusion> fusion = fuse_at(calls, at);
    if (fusion && fuses(fusion->convolution)) {
      result.push_back({calls[at].name, fusion->convolution});
      for (const Work& work : fusion->norm) result.push_back({calls[at + 1].name, work});
      at += 2;
    } else {
      result.push_back(std::move(calls[at++]));
    }
  }
  return without_passes(std::move(result), fuses);
}

}  // namespace dtrain::backend::cuda
