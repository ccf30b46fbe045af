// The batches of a loader as an executable takes them. Where the executable has memory of its own, the next batch is on
// its way there while one is computed.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include <dtrain/backend/backend.hpp>
#include <dtrain/data/loader.hpp>

namespace dtrain::train {

backend::HostBatch host_batch(const data::Batch& batch);

// A batch with its handle from Executable::stage(). The caller keeps it until its work is done.
struct FedBatch {
  data::Batch batch;
  std::uint64_t staged = 0;
  backend::HostBatch host() const;
};

// Borrows both. One thread, which is the executable's and the loader's.
class BatchFeed {
 public:
  BatchFeed(data::Loader& loader, backend::Executable& executable) : loader_(loader), executable_(executable) {}
  // Same as Loader::start().
  void start(std::uint32_t epoch, std::vector<data::Slice> slices);
  // Same as Loader::next(). Never waits for more than the batch that it gives.
  [[nodiscard]] std::optional<FedBatch> next();

 private:
  FedBatch staged(data::Batch batch);
  data::Loader& loader_;
  backend::Executable& executable_;
  std::optional<FedBatch> ahead_;
};

}  // namespace dtrain::train
