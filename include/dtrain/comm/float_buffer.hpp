// Memory for floats that a communicator hands out and takes back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <utility>

namespace dtrain::comm {

// Moved, never copied. One thread at a time.
class FloatBuffer {
 public:
  FloatBuffer() = default;
  // Memory of this process, any content, from a line of the cache on: a vector that crosses lines costs twice.
  explicit FloatBuffer(std::int64_t size) : FloatBuffer(whole_lines(static_cast<std::size_t>(size)), size) {}
  // Memory that `values` owns.
  FloatBuffer(std::shared_ptr<float[]> values, std::int64_t size)
      : values_(std::move(values)), size_(static_cast<std::size_t>(size)) {}
  FloatBuffer(FloatBuffer&& other) noexcept
      : values_(std::move(other.values_)), size_(std::exchange(other.size_, std::size_t{0})) {}
  FloatBuffer& operator=(FloatBuffer&& other) noexcept {
    values_ = std::move(other.values_);
    size_ = std::exchange(other.size_, std::size_t{0});
    return *this;
  }

  float* data() { return values_.get(); }
  const float* data() const { return values_.get(); }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  float* begin() { return data(); }
  float* end() { return data() + size_; }
  const float* begin() const { return data(); }
  const float* end() const { return data() + size_; }
  float& operator[](std::size_t i) { return values_[static_cast<std::ptrdiff_t>(i)]; }
  float operator[](std::size_t i) const { return values_[static_cast<std::ptrdiff_t>(i)]; }

 private:
  static std::shared_ptr<float[]> whole_lines(std::size_t size) {
    constexpr std::align_val_t kLine{64};
    return {static_cast<float*>(::operator new(size * sizeof(float), kLine)),
            [](float* values) { ::operator delete(values, kLine); }};
  }

  std::shared_ptr<float[]> values_;
  std::size_t size_ = 0;
};

}  // namespace dtrain::comm
