#include <dtrain/train/gradient_compression.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain::train {
namespace {

constexpr std::string_view kTwoBit = "2bit", kTopK = "topk";

double number_behind(std::string_view name, std::string_view text, const ValueRange& range) {
  const auto number = parse_number(text.substr(name.size() + 1));
  if (number && range.has(*number)) return *number;
  throw UsageError(fmt::format("'{}': the number behind {}: must be {}", text, name, in_words(range)),
                   fmt::format("for example {}", name == kTwoBit ? "2bit:0.5" : "topk:0.01"));
}

bool has_number(std::string_view text, std::string_view name) {
  return text.size() > name.size() && text.starts_with(name) && text[name.size()] == ':';
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
    compression.threshold = static_cast<float>(number_behind(kTwoBit, text, kThresholdRange));
    require_in(kThresholdRange, compression.threshold, "gradient-compression");  // as float32
  } else if (has_number(text, kTopK)) {
    compression.kind = Compression::top_k;
    compression.share = number_behind(kTopK, text, kShareRange);
  } else {
    throw UsageError(fmt::format("must be none, 2bit, 2bit:THRESHOLD or topk:SHARE, not '{}'", text));
  }
  return compression;
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

std::int64_t bytes_of_leaf(const GradientCompression& compression, std::int64_t floats) {
  constexpr std::int64_t kMasked = 64;  // floats of a mask, as in comm/packing.hpp
  const std::int64_t whole = floats * std::int64_t{sizeof(float)}, sent = floats_sent(compression.share, floats);
  const std::int64_t masks = std::min(sent, floats / kMasked) * kMasked / 8 + floats / kMasked / 8;
  std::int64_t packed = whole;
  if (compression.kind == Compression::two_bit) packed = floats / 4;
  if (compression.kind == Compression::top_k) packed = sent * std::int64_t{sizeof(float)} + masks;
  return (packed * (compression.window - 1) + whole) / compression.window;
}

GradientCompressor::GradientCompressor(const GradientCompression& options, std::int64_t gradients,
                                       comm::ShardSpan shards)
    : options_(options),
      gradients_(gradients),
      shards_(shards),
      kept_(std::make_unique<Kept[]>(static_cast<std::size_t>(shards.last - shards.first))) {
  DTRAIN_CHECK(options.any(), "there is something to compress");
  for (int shard = shards.first; shard < shards.last; ++shard) {
    kept_of(shard).residual.resize(static_cast<std::size_t>(gradients));
  }
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
    std::ranges::fill(residual, 0.0f);
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

void GradientCompressor::restore(std::span<float> sum) const {
  if (whole_ || options_.kind != Compression::two_bit) return;
  for (float& value : sum.first(static_cast<std::size_t>(gradients_))) value *= options_.threshold;
}

}  // namespace dtrain::train
