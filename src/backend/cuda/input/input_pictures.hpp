// What the pictures of a batch show, as one piece of page-locked memory that is copied to the device.
#pragma once

#include <cstddef>
#include <cstdint>

#include <dtrain/backend/backend.hpp>

#include "../device.hpp"

namespace dtrain::backend::cuda {

class InputPictures {
 public:
  explicit InputPictures(Device& device) : device_(device) {}
  ~InputPictures();
  InputPictures(const InputPictures&) = delete;

  // Packs the objects of batch.objects, which is not null, but no groups. No copy from here is under way.
  void pack(const HostBatch& batch, const nn::Shape& image);

  std::int64_t objects() const { return objects_; }
  std::int64_t mask_words() const { return words_; }  // of all masks; 0: there are none
  const PictureRow* rows() const { return at<PictureRow>(rows_); }
  const nn::Box* boxes() const { return at<nn::Box>(boxes_); }
  const std::int32_t* classes() const { return at<std::int32_t>(classes_); }
  const std::uint32_t* masks() const { return at<std::uint32_t>(masks_); }

 private:
  template <typename T>
  T* at(std::size_t offset) const {
    return reinterpret_cast<T*>(memory_ + offset);
  }
  void reserve(std::size_t bytes);
  void fill(const HostBatch& batch, const nn::Shape& image);

  Device& device_;
  std::byte* memory_ = nullptr;
  std::size_t size_ = 0;
  std::size_t rows_ = 0, boxes_ = 0, classes_ = 0, masks_ = 0;  // where they begin
  std::int64_t objects_ = 0, words_ = 0;
};

}  // namespace dtrain::backend::cuda
