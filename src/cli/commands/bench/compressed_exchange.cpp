#include "compressed_exchange.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include <dtrain/base/random.hpp>
#include <dtrain/base/stats.hpp>
#include <dtrain/base/text.hpp>

#include "allreduce_simulation.hpp"
#include "bench/forked_ranks.hpp"

namespace dtrain::cli {
namespace {

using train::GradientCompression;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kRows = 512, kColumns = 256 * 3 * 3;
constexpr std::size_t kNumbers = 3;  // of a step: seconds, processor time, bytes sent

std::string texts_of(const Compressions& kinds) {
  std::string text;
  for (const GradientCompression& kind : kinds) text += (text.empty() ? "" : ",") + train::compression_text(kind);
  return text;
}

// One rank's steps with one kind. Gradients are random numbers, so what topk sends is at other places in each shard.
class CompressedCase {
 public:
  CompressedCase(comm::Communicator& comm, const GradientCompression& kind, const std::vector<nn::TensorView>& tensors,
                 std::int64_t floats)
      : comm_(comm),
        shape_{.shards = comm::power_of_two_at_least(comm.size()), .size = floats},
        span_(comm::shards_of_rank(comm.rank(), comm.size(), shape_.shards)),
        gradients_(static_cast<std::size_t>(floats)) {
    RandomStream random(1, RandomUse::drawing, static_cast<std::uint32_t>(comm.rank()), 0);
    std::ranges::generate(gradients_, [&] { return random.uniform(-1, 1); });
    if (!kind.any()) return;
    compressor_ = std::make_unique<train::GradientCompressor>(kind, tensors, shape_.shards, span_);
    compressor_->open(std::vector<float>(gradients_.size()));
  }

  void step() {
    if (compressor_) compressor_->begin_step(false);
    const bool has_factors = compressor_ && compressor_->has_factors();
    const auto reduction = comm_.begin_reduction(shape_of_step(), {});
    for (int shard = span_.first; shard < span_.last; ++shard) contribute(*reduction, shard);
    comm::FloatBuffer sum = reduction->finish().sum;
    if (has_factors) {
      room_ = train::add_factors(*compressor_, comm_, shape_, std::move(sum), std::move(room_));
      return;
    }
    if (compressor_) compressor_->restore(sum);
    comm_.recycle(std::move(sum));
  }

 private:
  comm::ReductionShape shape_of_step() const {
    if (!compressor_) return shape_;
    return compressor_->has_factors() ? compressor_->left_shape(shape_) : compressor_->shape(shape_);
  }

  void contribute(comm::Reduction& reduction, int shard) {
    if (compressor_ && compressor_->has_factors()) {
      std::ranges::copy(gradients_, compressor_->contribution(shard, shape_.size).begin());
      compressor_->collect(shard, {0, shape_.size});
      compressor_->left_factors(shard, reduction.leaf(shard));
      return reduction.ready(shard, 0, compressor_->left_shape(shape_).size);
    }
    const std::span<float> leaf = reduction.leaf(shard);
    std::ranges::copy(gradients_, leaf.begin());
    if (compressor_) compressor_->take(shard, leaf, {0, shape_.size});
    reduction.ready(shard, 0, shape_.size);
  }

  comm::Communicator& comm_;
  const comm::ReductionShape shape_;
  const comm::ShardSpan span_;
  std::vector<float> gradients_;
  comm::FloatBuffer room_;
  std::unique_ptr<train::GradientCompressor> compressor_;
};

// In a forked process: a step that warms up, then one for each round.
void run_rounds(bench::ForkedRank& me, const GradientCompression& kind, std::int64_t floats, bool by_tcp) {
  comm::MeshPlan plan;
  const auto endpoint = me.make_endpoint(plan, !by_tcp);
  const auto comm = endpoint->connect(plan, kConnectDeadline);
  CompressedCase one(*comm, kind, tensors_of(floats), floats);
  one.step();
  for (std::size_t at = 0; at < me.numbers().size(); at += kNumbers) {
    comm->all_gather({});
    const double sent = static_cast<double>(endpoint->traffic().value_or(comm::Traffic{}).sent);
    const double cpu_begin = cpu_seconds();
    const Clock::time_point begin = Clock::now();
    one.step();
    me.numbers()[at] = std::chrono::duration<double>(Clock::now() - begin).count();
    me.numbers()[at + 1] = cpu_seconds() - cpu_begin;
    comm->all_gather({});  // behind all that was queued
    me.numbers()[at + 2] = static_cast<double>(endpoint->traffic().value_or(comm::Traffic{}).sent) - sent;
  }
  comm->all_gather({});
}

CompressedTimes measure(int ranks, const GradientCompression& kind, std::int64_t floats, int rounds, bool by_tcp) {
  const auto results = bench::run_forked(ranks, static_cast<int>(kNumbers) * rounds, kDeadline,
                                         [&](bench::ForkedRank& me) { run_rounds(me, kind, floats, by_tcp); });
  CompressedTimes times{.kind = kind, .seconds = {}, .cpu_seconds = {}};
  for (std::size_t at = 0; at < kNumbers * static_cast<std::size_t>(rounds); at += kNumbers) {
    double seconds = 0, cpu = 0;
    for (const std::vector<double>& of_rank : results) {
      seconds = std::max(seconds, of_rank[at]);
      cpu += of_rank[at + 1];
      times.sent = std::max(times.sent, of_rank[at + 2]);
    }
    times.seconds.push_back(seconds);
    times.cpu_seconds.push_back(cpu);
  }
  std::ranges::sort(times.seconds);
  std::ranges::sort(times.cpu_seconds);
  return times;
}

// Over a window, whose last step sends floats as they are.
double mean_of_window(double step, double whole) {
  return (step * (train::kCompressionWindow - 1) + whole) / train::kCompressionWindow;
}

}  // namespace

void bind_compressions(config::OptionSet& set, Compressions& kinds) {
  set.add_custom(
      "--gradient-compression", "K,K,...",
      fmt::format("also measure or simulate steps whose gradients travel compressed, each K as in train: 2bit[:T], "
                  "topk:SHARE or powersgd[:RANK]. powersgd takes the array for layers of {} x {} numbers. A simulation "
                  "counts no time to compress",
                  kRows, kColumns),
      [&kinds](const std::string& text) {
        kinds.clear();
        for (const std::string& word : split(text, ',')) {
          if (const GradientCompression kind = train::compression_from(word); kind.any()) kinds.push_back(kind);
        }
      },
      [&kinds] { return texts_of(kinds); });
}

std::vector<nn::TensorView> tensors_of(std::int64_t floats) {
  std::vector<nn::TensorView> tensors;
  for (std::int64_t offset = 0; offset < floats;) {
    const std::int64_t rows = std::min(kRows, (floats - offset) / kColumns);
    const std::int64_t size = rows > 0 ? rows * kColumns : floats - offset;
    tensors.push_back({.name = "layer", .shape = {}, .offset = offset, .size = size});
    tensors.back().shape = rows > 0 ? std::vector<std::int64_t>{rows, kColumns} : std::vector<std::int64_t>{size};
    offset += size;
  }
  return tensors;
}

std::string gradients_text(const GradientCompression& kind) {
  return kind.any() ? train::compression_text(kind) : "float32";
}

std::vector<CompressedTimes> measure_compressed(int ranks, const Compressions& kinds, std::int64_t floats, int rounds,
                                                bool by_tcp) {
  std::vector<CompressedTimes> all{measure(ranks, {}, floats, rounds, by_tcp)};
  for (const GradientCompression& kind : kinds) all.push_back(measure(ranks, kind, floats, rounds, by_tcp));
  return all;
}

Json compressed_json(const std::vector<CompressedTimes>& all) {
  Json rows = Json::array();
  for (const CompressedTimes& times : all) {
    rows.push_back(Json::object({{"gradients", gradients_text(times.kind)},
                                 {"seconds", quantile(times.seconds, 0.5)},
                                 {"seconds_low", quantile(times.seconds, 0.1)},
                                 {"seconds_high", quantile(times.seconds, 0.9)},
                                 {"cpu_seconds", quantile(times.cpu_seconds, 0.5)},
                                 {"sent_bytes", times.sent},
                                 {"mean_sent_bytes", mean_of_window(times.sent, all.front().sent)}}));
  }
  return rows;
}

void answer_compressed(const std::vector<CompressedTimes>& all, Reporter& reporter) {
  reporter.answer(fmt::format("  {:<30}{:>10}{:>10}{:>10}{:>10}{:>10}{:>12}", "gradients", "ms", "10 %", "90 %",
                              "cpu ms", "MB sent", "mean of 32"));
  for (const CompressedTimes& times : all) {
    reporter.answer(fmt::format(
        "  {:<30}{:>10.1f}{:>10.1f}{:>10.1f}{:>10.1f}{:>10.2f}{:>12.2f}", gradients_text(times.kind),
        1e3 * quantile(times.seconds, 0.5), 1e3 * quantile(times.seconds, 0.1), 1e3 * quantile(times.seconds, 0.9),
        1e3 * quantile(times.cpu_seconds, 0.5), times.sent / 1e6, mean_of_window(times.sent, all.front().sent) / 1e6));
  }
}

}  // namespace dtrain::cli
