#include <dtrain/train/batch_feed.hpp>

#include <dtrain/base/error.hpp>

namespace dtrain::train {

backend::HostBatch host_batch(const data::Batch& batch) {
  backend::HostBatch host{batch.n, batch.images, batch.labels, batch.sample_ids, batch.pixels};
  host.objects = batch.objects;
  return host;
}

backend::HostBatch FedBatch::host() const {
  backend::HostBatch host = host_batch(batch);
  if (mixed) {
    host.partners = mixed->partners.data();
    host.shares = mixed->shares.data();
  }
  host.staged = staged;
  return host;
}

void BatchFeed::start(std::uint32_t epoch, std::vector<data::Slice> slices, MixPlan mix) {
  ahead_.reset();
  epoch_ = epoch;
  mix_ = std::move(mix);
  if (mix_.options.any()) slices_ = slices;
  taken_ = 0;
  loader_.start(epoch, std::move(slices));
}

void BatchFeed::add(const data::Slice& slice, std::vector<backend::ShardRange> mixed) {
  if (mix_.options.any()) {
    slices_.push_back(slice);
    mix_.shards.push_back(std::move(mixed));
  }
  loader_.add(slice);
}

FedBatch BatchFeed::prepared(data::Batch batch) {
  FedBatch fed{.batch = std::move(batch), .mixed = nullptr};
  if (mix_.options.any()) fed.mixed = mix(fed.batch);
  ++taken_;
  fed.staged = executable_.stage(fed.host());
  return fed;
}

// In place: the batch has not left this feed yet.
std::shared_ptr<const MixedLabels> BatchFeed::mix(const data::Batch& batch) {
  DTRAIN_CHECK(batch.images || batch.n == 0, "images of floats can be mixed, bytes cannot");
  auto mixed = std::make_shared<MixedLabels>();
  mixed->partners.assign(batch.labels, batch.labels + batch.n);
  mixed->shares.assign(static_cast<std::size_t>(batch.n), 1.0f);
  const data::Slice& slice = slices_[taken_];
  for (const backend::ShardRange& shard : mix_.shards[taken_]) {
    if (shard.count < 2) continue;
    const auto position = static_cast<std::uint32_t>(slice.first + static_cast<std::uint64_t>(shard.first));
    const data::MixDraw draw = data::draw_mix(mix_.options, {mix_.seed, epoch_, position}, mix_.image);
    float* const images = const_cast<float*>(batch.images) + shard.first * mix_.image.size();
    data::mix_images(draw, mix_.image, shard.count, images);
    for (int i = 0; i < shard.count; ++i) {
      const auto at = static_cast<std::size_t>(shard.first + i);
      mixed->partners[at] = batch.labels[shard.first + shard.count - 1 - i];
      mixed->shares[at] = draw.share;
    }
  }
  return mixed;
}

std::optional<FedBatch> BatchFeed::next() {
  std::optional<FedBatch> now = std::exchange(ahead_, std::nullopt);
  if (!now) {
    std::optional<data::Batch> batch = loader_.next();
    if (!batch) return std::nullopt;
    now = prepared(std::move(*batch));
  }
  if (now->staged == 0) return now;
  if (std::optional<data::Batch> batch = loader_.next_if_ready()) ahead_ = prepared(std::move(*batch));
  return now;
}

}  // namespace dtrain::train
