// The batches of a loader as an executable takes them. Where the executable has memory of its own, the next batch is on
// its way there while one is computed.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <dtrain/backend/backend.hpp>
#include <dtrain/data/loader.hpp>
#include <dtrain/data/mix.hpp>

namespace dtrain::train {

backend::HostBatch host_batch(const data::Batch& batch);

// What is mixed: the samples of each logical shard among each other.
struct MixPlan {
  data::MixOptions options = {};
  std::uint64_t seed = 0;
  nn::Shape image = {};
  std::vector<std::vector<backend::ShardRange>> shards = {};  // of each slice
};

// The second labels of a batch, and the shares of the first ones: see HostBatch.
struct MixedLabels {
  std::vector<std::int32_t> partners;
  std::vector<float> shares;
};

// A batch with its handle from Executable::stage(). The caller keeps it until its work is done.
struct FedBatch {
  data::Batch batch;
  std::shared_ptr<const MixedLabels> mixed;  // null: it is not mixed
  std::uint64_t staged = 0;
  backend::HostBatch host() const;
};

// Borrows both. One thread, which is the executable's and the loader's.
class BatchFeed {
 public:
  BatchFeed(data::Loader& loader, backend::Executable& executable) : loader_(loader), executable_(executable) {}
  // Same as Loader::start(). Mixing needs a loader of floats.
  void start(std::uint32_t epoch, std::vector<data::Slice> slices, MixPlan mix = {});
  // Same as Loader::add(); `mixed`: as in MixPlan::shards.
  void add(const data::Slice& slice, std::vector<backend::ShardRange> mixed);
  // Same as Loader::next(). Never waits for more than the batch that it gives.
  [[nodiscard]] std::optional<FedBatch> next();

 private:
  FedBatch prepared(data::Batch batch);
  std::shared_ptr<const MixedLabels> mix(const data::Batch& batch);
  data::Loader& loader_;
  backend::Executable& executable_;
  std::optional<FedBatch> ahead_;
  std::uint32_t epoch_ = 0;
  std::vector<data::Slice> slices_;  // only to mix
  MixPlan mix_;
  std::size_t taken_ = 0;  // batches, from the loader
};

}  // namespace dtrain::train
