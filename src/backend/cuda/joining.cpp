#include "joining.hpp"

#include <cstddef>
#include <optional>
#include <type_traits>
#include <variant>

namespace dtrain::backend::cuda {
namespace {

using Calls = std::vector<Call>;

template <typename Body>
constexpr bool kIsSums = false;
template <typename T>
constexpr bool kIsSums<NormSums<T>> = true;

// NormFromBatch by the moments of all rows.
template <typename T>
NormFromBatch<T> by_moments(NormFromBatch<T> norm, const float* moments) {
  norm.sums = moments;
  norm.x = nullptr;
  norm.cut = {.rows = norm.cut.rows};
  return norm;
}

// What becomes of a convolution and of the calls that sum its result up for a norm.
struct Join {
  Convolution convolution;
  Work norm;
  std::size_t calls;  // that the two replace
};

template <typename T>
std::optional<Join> join_as(const Calls& calls, std::size_t at) {
  Convolution convolution = std::get<Convolution>(calls[at].work);
  const auto* const sums = std::get_if<NormSums<T>>(&calls[at + 1].work);
  if (!sums || sums->x != convolution.result) return std::nullopt;
  const std::size_t norm_at = std::holds_alternative<FoldParts>(calls[at + 2].work) ? at + 3 : at + 2;
  if (norm_at >= calls.size()) return std::nullopt;
  const auto* const norm = std::get_if<NormFromBatch<T>>(&calls[norm_at].work);
  if (!norm || norm->x != sums->x) return std::nullopt;
  // Until backward fills them, the rows for the gradient's sums are free, and no other tensor ever lies there.
  convolution.moments = &norm->coefficients.gradient_mean(0);
  return Join{convolution, by_moments(*norm, convolution.moments), norm_at + 1 - at};
}

std::optional<Join> join_at(const Calls& calls, std::size_t at) {
  const auto* const convolution = std::get_if<Convolution>(&calls[at].work);
  if (!convolution || convolution->direction != Direction::forward || at + 2 >= calls.size()) return std::nullopt;
  return std::visit(
      [&]<typename Next>(const Next& next) -> std::optional<Join> {
        if constexpr (kIsSums<Next>) return join_as<std::remove_cvref_t<decltype(*next.x)>>(calls, at);
        return std::nullopt;
      },
      calls[at + 1].work);
}

}  // namespace

Calls joined(Calls calls, const std::function<bool(const Convolution&)>& joins) {
  Calls result;
  for (std::size_t at = 0; at < calls.size();) {
    const std::optional<Join> join = join_at(calls, at);
    if (join && joins(join->convolution)) {
      result.push_back({calls[at].name, join->convolution});
      result.push_back({calls[at + join->calls - 1].name, join->norm});
      at += join->calls;
    } else {
      result.push_back(std::move(calls[at++]));
    }
  }
  return result;
}

}  // namespace dtrain::backend::cuda
