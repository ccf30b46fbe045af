#include "batch_queue.hpp"

namespace dtrain::data {

std::shared_ptr<PendingBatch> BatchQueue::pop() {
  auto front = std::move(pending_.front());
  pending_.pop_front();
  return front;
}

void BatchQueue::drop_all() {
  for (const auto& batch : pending_) batch->dropped = true;
  pending_.clear();
}

Claim BatchQueue::claim() {
  constexpr int kSamples = 8;
  for (const auto& batch : pending_) {
    const int left = batch->slice.count - batch->claimed;
    if (left == 0) continue;
    const Claim claim{batch, batch->claimed, std::min(left, kSamples)};
    batch->claimed += claim.count;
    return claim;
  }
  return {};
}

}  // namespace dtrain::data
