#include <dtrain/train/gradient_compression.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/parallel.hpp>
#include <dtrain/base/text.hpp>

#include "power_sgd.hpp"

namespace dtrain::train {
namespace {

constexpr std::string_view kTwoBit = "2bit", kTopK = "topk", kPowerSgd = "powersgd";

double number_behind(std::string_view name, std::string_view text, const ValueRange& range, const char* example) {
  const auto number = parse_number(text.substr(name.size() + 1));
  if (number && range.has(*number)) return *number;
  throw UsageError(fmt::format("'{}': the number behind {}: must be {}", text, name, in_words(range)),
                   fmt::format("for example {}:{}", name, example));
}

int rank_behind(std::string_view text) {
  const double number = number_behind(kPowerSgd, text, kFactorRange, "2");
  if (number == std::floor(number)) return static_cast<int>(number);
  throw UsageError(fmt::format("'{}': a factor has a whole number of columns", text), "for example powersgd:2");
}

bool has_number(std::string_view text, std::string_view name) {
  return text.size() > name.size() && text.starts_with(name) && text[name.size()] == ':';
}

std::int64_t gradients_of(std::span<const nn::TensorView> parameters) {
  return parameters.empty() ? 0 : parameters.back().offset + parameters.back().size;
}

// Floats of one sign are ordered like the bits that they lie in; whatever is not a number comes above all others.
std::uint32_t magnitude(float value) { return std::bit_cast<std::uint32_t>(value) & 0x7fffffffu; }

}  // namespace

std::string compression_text(const GradientCompression& compression) {
  switch (compression.kind) {
    case Compression::two_bit:
      return fmt::format("{}:{}", kTwoBit, compression.threshold);
    case Compression::top_k:
      return fmt::format("{}:{}", kTopK, compression.share);
    case Compression::power_sgd:
      return fmt::format("{}:{}", kPowerSgd, compression.rank);
    case Compression::none:
      break;
  }
  return "none";
}

GradientCompression compression_from(const std::string& text, const GradientCompression& before) {
  GradientCompression compression = before;
  if (text == "none") {
    compression.kind = Compression::none;
  } else if (text == kTwoBit) {
    compression.kind = Compression::two_bit;
  } else if (has_number(text, kTwoBit)) {
    compression.kind = Compression::two_bit;
    compression.threshold = static_cast<float>(number_behind(kTwoBit, text, kThresholdRange, "0.5"));
    require_in(kThresholdRange, compression.threshold, "gradient-compression");  // as float32
  } else if (has_number(text, kTopK)) {
    compression.kind = Compression::top_k;
    compression.share = number_behind(kTopK, text, kShareRange, "0.01");
  } else if (text == kPowerSgd || has_number(text, kPowerSgd)) {
    compression.kind = Compression::power_sgd;
    if (text != kPowerSgd) compression.rank = rank_behind(text);
  } else {
    throw UsageError(fmt::format("must be none, 2bit[:THRESHOLD], topk:SHARE or powersgd[:RANK], not '{}'", text));
  }
  return compression;
}

int optimizer_slots(nn::OptimizerKind inner, const LocalSteps& local, const GradientCompression& compression) {
  return optimizer_slots(inner, local) + (compression.any() ? 1 : 0);
}

void quantise(float threshold, std::span<float> gradient, std::span<float> residual) {
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const float held = residual[i] + gradient[i];
    const float sign = held >= threshold ? 1.0f : held <= -threshold ? -1.0f : 0.0f;
    gradient[i] = sign;
    residual[i] = held - sign * threshold;
  }
}

std::int64_t floats_sent(double share, std::int64_t floats) {
  const auto count = static_cast<std::int64_t>(share * static_cast<double>(floats));
  return std::clamp<std::int64_t>(count, std::min<std::int64_t>(1, floats), floats);
}

std::int64_t bytes_of_leaf(const GradientCompression& compression, std::span<const nn::TensorView> parameters) {
  constexpr std::int64_t kMasked = 64;  // floats of a mask, as in comm/packing.hpp
  constexpr std::int64_t kWidth = sizeof(float);
  const std::int64_t floats = gradients_of(parameters), whole = floats * kWidth;
  std::int64_t packed = whole;
  if (compression.kind == Compression::two_bit) packed = floats / 4;
  if (compression.kind == Compression::top_k) {
    const std::int64_t sent = floats_sent(compression.share, floats);
    packed = sent * kWidth + std::min(sent, floats / kMasked) * kMasked / 8 + floats / kMasked / 8;
  }
  if (compression.kind == Compression::power_sgd) {
    const PowerSgd factors(parameters, compression.rank);
    packed = (factors.left_size() + factors.right_size()) * kWidth;
  }
  return (packed * (compression.window - 1) + whole) / compression.window;
}

GradientCompressor::GradientCompressor(const GradientCompression& options, std::span<const nn::TensorView> parameters,
                                       int all_shards, comm::ShardSpan shards)
    : options_(options),
      gradients_(gradients_of(parameters)),
      all_shards_(all_shards),
      shards_(shards),
      kept_(std::make_unique<Kept[]>(static_cast<std::size_t>(shards.last - shards.first))) {
  DTRAIN_CHECK(options.any(), "there is something to compress");
  if (options.kind == Compression::power_sgd) factors_ = std::make_unique<PowerSgd>(parameters, options.rank);
  for (int shard = shards.first; shard < shards.last; ++shard) {
    kept_of(shard).residual.resize(static_cast<std::size_t>(gradients_));
  }
}

GradientCompressor::~GradientCompressor() = default;

// Exact, since the number of shards is a power of two: their residuals add up to what is held back.
void GradientCompressor::open(std::span<const float> held_back) {
  DTRAIN_CHECK(std::ssize(held_back) == gradients_, "what is held back are gradients");
  const float share = 1.0f / static_cast<float>(all_shards_);
  for (int shard = shards_.first; shard < shards_.last; ++shard) {
    std::ranges::transform(held_back, kept_of(shard).residual.begin(), [&](float held) { return held * share; });
  }
  if (factors_) factors_->begin(held_back);
}

void GradientCompressor::begin_step(bool whole) {
  whole_ = whole;
  for (int shard = shards_.first; shard < shards_.last; ++shard) kept_of(shard).missing = gradients_;
}

comm::ReductionShape GradientCompressor::shape(comm::ReductionShape plain) const {
  if (whole_) return plain;
  plain.packed = gradients_;
  plain.packing = options_.kind == Compression::two_bit ? comm::Packing::counts : comm::Packing::sparse;
  return plain;
}

FloatRange GradientCompressor::take(int shard, std::span<float> leaf, FloatRange computed) {
  DTRAIN_CHECK(!has_factors(), "factors are no part of a contribution");
  Kept& kept = kept_of(shard);
  const auto first = static_cast<std::size_t>(computed.first), size = static_cast<std::size_t>(computed.size);
  const std::span<float> gradient = leaf.subspan(first, size), residual = std::span(kept.residual).subspan(first, size);
  if (!whole_ && options_.kind == Compression::two_bit) {
    quantise(options_.threshold, gradient, residual);
    return computed;
  }
  std::ranges::transform(residual, gradient, residual.begin(), std::plus<>());
  if (whole_) {
    std::ranges::copy(residual, gradient.begin());
    return computed;
  }
  // The largest ones are known with the last part only.
  if (kept.missing.fetch_sub(computed.size, std::memory_order_acq_rel) != computed.size) return {0, 0};
  choose_largest(leaf.first(static_cast<std::size_t>(gradients_)), kept.residual);
  return {0, gradients_};
}

void GradientCompressor::choose_largest(std::span<float> leaf, std::span<float> residual) const {
  const std::int64_t count = floats_sent(options_.share, gradients_);
  std::vector<std::uint32_t> magnitudes(residual.size());
  std::ranges::transform(residual, magnitudes.begin(), magnitude);
  const auto last = magnitudes.begin() + (count - 1);
  std::ranges::nth_element(magnitudes, last, std::greater<>());
  const std::uint32_t least = *last;
  auto equals = std::ranges::count(magnitudes.begin(), last + 1, least);  // of those that are sent
  for (std::size_t i = 0; i < residual.size(); ++i) {
    const std::uint32_t size = magnitude(residual[i]);
    const bool goes = size > least || (size == least && equals-- > 0);
    leaf[i] = goes && size != 0 ? residual[i] : 0.0f;
    if (goes) residual[i] = 0.0f;
  }
}

void GradientCompressor::restore(std::span<float> sum) {
  const std::span<float> gradients = sum.first(static_cast<std::size_t>(gradients_));
  if (whole_) {
    rest_.assign(gradients.begin(), gradients.end());
    compress_sum(gradients, rest_);
  } else if (options_.kind == Compression::two_bit) {
    for (float& value : gradients) value *= options_.threshold;
  }
}

bool GradientCompressor::is_rest_finite() const {
  return std::ranges::all_of(rest_, [](float value) { return std::isfinite(value); });
}

// `rest` is the sum. What it keeps and what the sum becomes add up to it.
void GradientCompressor::compress_sum(std::span<float> sum, std::span<float> rest) {
  switch (options_.kind) {
    case Compression::two_bit: {  // as if all shards held equally much
      const float threshold =
          std::min(options_.threshold * static_cast<float>(all_shards_), std::numeric_limits<float>::max());
      std::ranges::fill(sum, 0.0f);
      quantise(threshold, sum, rest);
      for (float& value : sum) value *= threshold;
      return;
    }
    case Compression::top_k:
      return choose_largest(sum, rest);
    case Compression::power_sgd: {
      std::vector<float> left(static_cast<std::size_t>(factors_->left_size()));
      std::vector<float> right(static_cast<std::size_t>(factors_->right_size()));
      factors_->multiply_left(rest, left);
      factors_->set_left(left);
      factors_->multiply_right(rest, right);
      factors_->expand(left, right, sum);
      return factors_->subtract(right, rest);
    }
    case Compression::none:
      break;
  }
}

// ---- factors

comm::ReductionShape GradientCompressor::left_shape(const comm::ReductionShape& plain) const {
  return {.shards = plain.shards, .size = factors_->left_size() + plain.size - gradients_, .spans = plain.spans};
}

comm::ReductionShape GradientCompressor::right_shape(const comm::ReductionShape& plain) const {
  return {.shards = plain.shards, .size = factors_->right_size(), .spans = plain.spans};
}

std::span<float> GradientCompressor::contribution(int shard, std::int64_t size) {
  Kept& kept = kept_of(shard);
  kept.contribution.resize(static_cast<std::size_t>(size));
  kept.missing = size;
  return kept.contribution;
}

bool GradientCompressor::collect(int shard, FloatRange computed) {
  Kept& kept = kept_of(shard);
  const std::int64_t gradients = std::clamp<std::int64_t>(gradients_ - computed.first, 0, computed.size);
  for (std::int64_t i = computed.first; i < computed.first + gradients; ++i) {
    const auto at = static_cast<std::size_t>(i);
    kept.residual[at] += kept.contribution[at];
  }
  return kept.missing.fetch_sub(computed.size, std::memory_order_acq_rel) == computed.size;
}

void GradientCompressor::left_factors(int shard, std::span<float> leaf) {
  const Kept& kept = kept_of(shard);
  const auto left = static_cast<std::size_t>(factors_->left_size());
  factors_->multiply_left(kept.residual, leaf.first(left));
  std::ranges::copy(std::span(kept.contribution).subspan(static_cast<std::size_t>(gradients_)),
                    leaf.subspan(left).begin());
}

void GradientCompressor::set_left_sum(std::span<const float> sum) { factors_->set_left(sum); }

void GradientCompressor::right_factors(int shard, std::span<float> leaf) {
  Kept& kept = kept_of(shard);
  factors_->multiply_right(kept.residual, leaf);
  factors_->subtract(leaf, kept.residual);
}

void GradientCompressor::expand(std::span<const float> left, std::span<const float> right, std::span<float> sum) {
  factors_->expand(left, right, sum.first(static_cast<std::size_t>(gradients_)));
  std::ranges::copy(left.subspan(static_cast<std::size_t>(factors_->left_size())),
                    sum.subspan(static_cast<std::size_t>(gradients_)).begin());
  factors_->set_right(right);
}

// Of all shards at once: they wait for the first reduction.
comm::FloatBuffer add_factors(GradientCompressor& compressor, comm::Communicator& comm,
                              const comm::ReductionShape& plain, comm::FloatBuffer left, comm::FloatBuffer room) {
  compressor.set_left_sum(left);
  const comm::ReductionShape shape = compressor.right_shape(plain);
  comm::Reduced right;
  if (shape.size > 0) {
    const std::unique_ptr<comm::Reduction> reduction = comm.begin_reduction(shape, {});
    const comm::ShardSpan mine = compressor.shards();
    for_each_in_parallel(static_cast<std::size_t>(mine.size()), [&](std::size_t i) {
      const int shard = mine.first + static_cast<int>(i);
      compressor.right_factors(shard, reduction->leaf(shard));
      reduction->ready(shard, 0, shape.size);
    });
    right = reduction->finish();
  }
  if (static_cast<std::int64_t>(room.size()) != plain.size) room = comm::FloatBuffer(plain.size);
  compressor.expand(left, right.sum, room);
  comm.recycle(std::move(left));
  comm.recycle(std::move(right.sum));
  return room;
}

}  // namespace dtrain::train
