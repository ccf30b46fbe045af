#include "joining.hpp"

#include <cstddef>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

namespace dtrain::backend::cuda {
namespace {

using Calls = std::vector<Call>;
using Joins = std::function<bool(const Convolution&)>;

template <typename Body>
constexpr bool kIsSums = false;
template <typename T>
constexpr bool kIsSums<NormSums<T>> = true;
template <typename Body>
constexpr bool kIsApply = false;
template <typename T>
constexpr bool kIsApply<NormApply<T>> = true;

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

// The factors that a norm's pass would compute by; null: no such pass.
const void* factors_of(const Call& call) {
  return std::visit(
      []<typename Body>(const Body& body) -> const void* {
        if constexpr (kIsApply<Body>)
          return body.coefficients.template factors<std::remove_cvref_t<decltype(*body.y)>>();
        return nullptr;
      },
      call.work);
}

using Readers = std::vector<std::pair<std::size_t, Convolution>>;

// The convolutions of what a norm with these factors makes, joined with it; empty where one of them cannot be.
Readers joined_readers(const Calls& calls, const void* factors, const Joins& joins) {
  Readers readers;
  for (std::size_t at = 0; at < calls.size(); ++at) {
    const auto* const convolution = std::get_if<Convolution>(&calls[at].work);
    if (!convolution || !convolution->normed.x || convolution->normed.factors != factors) continue;
    readers.emplace_back(at, *convolution);
    readers.back().second.normed.joined = true;
    if (!joins(readers.back().second)) return {};
  }
  return readers;
}

// Leaves out the passes of norms that their readers compute themselves.
Calls without_passes(Calls calls, const Joins& joins) {
  Calls result;
  for (std::size_t at = 0; at < calls.size(); ++at) {
    const void* const factors = factors_of(calls[at]);
    const Readers readers = factors ? joined_readers(calls, factors, joins) : Readers{};
    for (const auto& [reader, convolution] : readers) calls[reader].work = convolution;
    if (readers.empty()) result.push_back(calls[at]);
  }
  return result;
}

}  // namespace

Calls joined(Calls calls, const Joins& joins) {
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
  return without_passes(std::move(result), joins);
}

}  // namespace dtrain::backend::cuda
