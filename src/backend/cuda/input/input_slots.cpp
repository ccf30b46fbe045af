#include "input_slots.hpp"

#include <algorithm>

#include <dtrain/base/error.hpp>

namespace dtrain::backend::cuda {
namespace {

constexpr std::uint64_t kStep = 256;

std::uint64_t aligned(std::uint64_t bytes) { return (bytes + kStep - 1) / kStep * kStep; }

std::int64_t stored_size(const nn::Pixels& pixels, const nn::Shape& image) {
  return std::int64_t{pixels.rows} * pixels.columns * image.c;
}

// The parts of a batch one behind the other, from an address on; 0: only their bytes are wanted.
class Parts {
 public:
  explicit Parts(std::uintptr_t to) : to_(to) {}
  template <typename T>
  T* add(const T* from, std::int64_t elements) {  // null: room alone
    const auto bytes = static_cast<std::size_t>(elements) * sizeof(T);
    auto* const to = reinterpret_cast<T*>(to_ + bytes_);
    bytes_ += aligned(bytes);
    if (bytes > 0 && from) pieces_.push_back({to, from, bytes});
    return to;
  }
  std::uint64_t bytes() const { return bytes_; }
  const std::vector<CopyPiece>& pieces() const { return pieces_; }

 private:
  std::uintptr_t to_;
  std::uint64_t bytes_ = 0;
  std::vector<CopyPiece> pieces_;
};

PictureTable lay_out(const InputPictures& pictures, int n, Parts& parts) {
  const std::int64_t objects = pictures.objects();
  PictureTable table;
  table.rows = parts.add(pictures.rows(), n);
  table.boxes = parts.add(pictures.boxes(), objects);
  table.classes = parts.add(pictures.classes(), objects);
  if (pictures.mask_words() > 0) table.masks = parts.add(pictures.masks(), pictures.mask_words());
  table.part_overlaps = parts.add<float>(nullptr, objects * kOverlapParts);
  table.best_overlaps = parts.add<float>(nullptr, objects);
  table.items = parts.add<DrawnItem>(nullptr, objects);
  return table;
}

// `pictures`: of the batch; null where nothing is known of what it shows.
Samples lay_out(const HostBatch& batch, const nn::Shape& image, const InputPictures* pictures, Parts& parts) {
  Samples samples;
  if (batch.pixels.bytes) {
    samples.pixels = batch.pixels;
    samples.pixels.bytes = parts.add(batch.pixels.bytes, batch.n * stored_size(batch.pixels, image));
    samples.pixels.places = parts.add(batch.pixels.places, batch.n);
  } else {
    samples.images = parts.add(batch.images, batch.n * image.size());
  }
  samples.labels = parts.add(batch.labels, batch.n);
  samples.sample_ids = parts.add(batch.sample_ids, batch.n);
  if (batch.shares) {
    samples.partners = parts.add(batch.partners, batch.n);
    samples.shares = parts.add(batch.shares, batch.n);
  }
  if (pictures) samples.pictures = lay_out(*pictures, batch.n, parts);
  return samples;
}

}  // namespace

std::uint64_t InputSlots::bytes_for(const nn::Shape& image, int samples, bool as_bytes) {
  static constexpr std::uint8_t kAny = 0;  // its address alone counts: there are bytes
  Parts parts(0);
  HostBatch batch{.n = samples};
  if (as_bytes) batch.pixels = {.bytes = &kAny, .places = nullptr, .rows = image.h, .columns = image.w, .scale = {}};
  lay_out(batch, image, nullptr, parts);
  return parts.bytes();
}

std::uint64_t InputSlots::object_bytes(const nn::Detections* detection, int samples) {
  constexpr std::int64_t kObjects = 32;  // of a picture
  if (!detection) return 0;
  const std::int64_t words =
      detection->mask > 0 ? std::int64_t{detection->image_height} * mask_words(detection->image_width) : 0;
  const auto of_object = static_cast<std::uint64_t>(words + kOverlapParts + 1) * sizeof(float) + sizeof(nn::Box) +
                         sizeof(std::int32_t) + sizeof(DrawnItem);
  return static_cast<std::uint64_t>(samples) * (kObjects * of_object + sizeof(PictureRow));
}

std::uint64_t InputSlots::bytes() const {
  std::uint64_t bytes = 0;
  for (const Slot& slot : slots_) bytes += slot.memory ? slot.memory->size() : 0;
  return bytes;
}

void InputSlots::fill(Slot& slot, const HostBatch& batch) {
  DTRAIN_CHECK(!batch.pixels.bytes || image_.c == 1 || image_.c == 3, "pixels have 1 or 3 channels");
  if (slot.copy) {
    if (slot.pictures) slot.copy->wait();
  } else {
    slot.copy = device_.side_copy();
  }
  if (batch.objects) {
    if (!slot.pictures) slot.pictures = std::make_unique<InputPictures>(device_);
    slot.pictures->pack(batch, image_);
  }
  const InputPictures* const pictures = batch.objects ? slot.pictures.get() : nullptr;
  Parts sizes(0);
  lay_out(batch, image_, pictures, sizes);
  if (!slot.memory || slot.memory->size() < sizes.bytes()) {
    slot.memory.reset();
    slot.memory = std::make_unique<DeviceMemory>(device_, sizes.bytes());
  }
  Parts parts(reinterpret_cast<std::uintptr_t>(slot.memory->data()));
  slot.samples = lay_out(batch, image_, pictures, parts);
  slot.name = ++last_name_;
  slot.copy->begin(parts.pieces());
}

std::uint64_t InputSlots::stage(const HostBatch& batch) {
  if (batch.n == 0) return 0;
  Slot& slot = *std::ranges::min_element(slots_, {}, &Slot::name);
  fill(slot, batch);
  return slot.name;
}

Samples InputSlots::take(const HostBatch& batch) {
  if (batch.n == 0) return {};
  auto slot =
      std::ranges::find_if(slots_, [&](const Slot& each) { return each.name > 0 && each.name == batch.staged; });
  if (slot == slots_.end()) {
    slot = std::ranges::min_element(slots_, {}, &Slot::name);
    fill(*slot, batch);
  }
  slot->copy->join();
  return slot->samples;
}

Samples InputSlots::from(const Samples& samples, std::int64_t first) const {
  Samples rest = samples;
  if (rest.images) rest.images += first * image_.size();
  if (rest.pixels.bytes) {
    rest.pixels.bytes += first * stored_size(rest.pixels, image_);
    rest.pixels.places += first;
  }
  rest.labels += first;
  rest.sample_ids += first;
  if (rest.shares) {
    rest.partners += first;
    rest.shares += first;
  }
  if (rest.pictures.rows) rest.pictures.rows += first;
  return rest;
}

}  // namespace dtrain::backend::cuda
