#include <dtrain/train/batch_feed.hpp>

namespace dtrain::train {

backend::HostBatch host_batch(const data::Batch& batch) {
  return {batch.n, batch.images, batch.labels, batch.sample_ids, batch.pixels};
}

backend::HostBatch FedBatch::host() const {
  backend::HostBatch host = host_batch(batch);
  host.staged = staged;
  return host;
}

void BatchFeed::start(std::uint32_t epoch, std::vector<data::Slice> slices) {
  ahead_.reset();
  loader_.start(epoch, std::move(slices));
}

FedBatch BatchFeed::staged(data::Batch batch) {
  const std::uint64_t name = executable_.stage(host_batch(batch));
  return {std::move(batch), name};
}

std::optional<FedBatch> BatchFeed::next() {
  std::optional<FedBatch> now = std::exchange(ahead_, std::nullopt);
  if (!now) {
    std::optional<data::Batch> batch = loader_.next();
    if (!batch) return std::nullopt;
    now = staged(std::move(*batch));
  }
  if (now->staged == 0) return now;
  if (std::optional<data::Batch> batch = loader_.next_if_ready()) ahead_ = staged(std::move(*batch));
  return now;
}

}  // namespace dtrain::train
