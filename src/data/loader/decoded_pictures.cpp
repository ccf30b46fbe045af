#include "decoded_pictures.hpp"

#include <algorithm>
#include <tuple>

namespace dtrain::data {
namespace {

// The picture and its pixels are two pieces of memory; malloc adds a header to each and rounds it up to 16 bytes.
constexpr std::uint64_t kMemoryHeader = 16;

std::uint64_t cost_of(const Image& picture) { return sizeof picture + picture.pixels.size() + 2 * kMemoryHeader; }

}  // namespace

DecodedPictures::DecodedPictures(std::size_t records, std::uint64_t budget)
    : slots_(records), budget_(budget - std::min<std::uint64_t>(budget, records * sizeof slots_.front())) {}

DecodedPictures::~DecodedPictures() {
  for (const auto& slot : slots_) delete slot.load(std::memory_order_relaxed);
}

const Image* DecodedPictures::find(std::uint32_t record) const {
  return slots_[record].load(std::memory_order_acquire);
}

bool DecodedPictures::reserve(std::uint64_t bytes) {
  std::uint64_t used = used_.load(std::memory_order_relaxed);
  do {
    if (bytes > budget_ - used) return false;
  } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  return true;
}

void DecodedPictures::keep(std::uint32_t record, const Image& picture) {
  decodings_.fetch_add(1, std::memory_order_relaxed);
  const std::uint64_t cost = cost_of(picture);
  if (find(record) || !reserve(cost)) return;
  auto copy = std::make_unique<const Image>(picture);  // whose vector has no room to spare
  const Image* nothing = nullptr;
  if (slots_[record].compare_exchange_strong(nothing, copy.get(), std::memory_order_release,
                                             std::memory_order_relaxed)) {
    std::ignore = copy.release();
    pictures_.fetch_add(1, std::memory_order_relaxed);
  } else {
    used_.fetch_sub(cost, std::memory_order_relaxed);
  }
}

KeptPictures DecodedPictures::kept() const {
  return {.pictures = pictures_.load(std::memory_order_relaxed),
          .bytes = used_.load(std::memory_order_relaxed),
          .decodings = decodings_.load(std::memory_order_relaxed)};
}

std::unique_ptr<DecodedPictures> decoded_pictures(std::size_t records, const LoaderOptions& options) {
  if (options.decoded_cache == 0) return nullptr;
  return std::make_unique<DecodedPictures>(records, options.decoded_cache);
}

}  // namespace dtrain::data
