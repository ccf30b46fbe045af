// Batches on the device: one that is being computed, and the next one on its way.
#pragma once

#include <array>
#include <memory>

#include <dtrain/backend/backend.hpp>

#include "../device.hpp"
#include "input_pictures.hpp"

namespace dtrain::backend::cuda {

class InputSlots {
 public:
  InputSlots(Device& device, const nn::Shape& image) : device_(device), image_(image) {}

  // See Executable::stage(). Takes the slot that was filled longer ago.
  std::uint64_t stage(const HostBatch& batch);
  // Where the batch is for work that is given from now on; uploads it if it was not staged.
  Samples take(const HostBatch& batch);
  // Sample `first` and those behind it.
  Samples from(const Samples& samples, std::int64_t first) const;
  std::uint64_t bytes() const;

  // Bytes of a batch of so many images, which are stored as bytes or as floats.
  static std::uint64_t bytes_for(const nn::Shape& image, int samples, bool as_bytes);
  // Bytes of what the pictures of a batch show, as many objects as is usual; null: of a classifier.
  static std::uint64_t object_bytes(const nn::Detections* detection, int samples);

 private:
  struct Slot {
    std::unique_ptr<DeviceMemory> memory;
    std::unique_ptr<SideCopy> copy;
    std::unique_ptr<InputPictures> pictures;  // of a detector
    std::uint64_t name = 0;
    Samples samples;
  };
  void fill(Slot& slot, const HostBatch& batch);

  Device& device_;
  const nn::Shape image_;
  std::array<Slot, 2> slots_;
  std::uint64_t last_name_ = 0;
};

}  // namespace dtrain::backend::cuda
