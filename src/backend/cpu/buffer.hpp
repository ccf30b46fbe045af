// Memory aligned for vectors, not initialised: pages are touched first by the thread that works on them.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

#include "kernels/passing_stores.hpp"

namespace dtrain::backend::cpu {

constexpr std::size_t kAlignment = kLineBytes;

inline std::size_t aligned(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t bytes) : bytes_(aligned(bytes)) {
    if (bytes_ == 0) return;
    data_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, bytes_)));
    if (!data_) throw Error("memory is short: cannot reserve " + format_bytes(bytes_), "use a smaller batch");
  }
  std::byte* data() const { return data_.get(); }
  template <typename T>
  T* as(std::size_t offset = 0) const {
    return reinterpret_cast<T*>(data_.get() + offset);
  }
  std::size_t size() const { return bytes_; }
  // Keeps nothing of the old content.
  void grow(std::size_t bytes) {
    if (bytes > bytes_) *this = Buffer(bytes);
  }

 private:
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::size_t bytes_ = 0;
  std::unique_ptr<std::byte, Free> data_;
};

}  // namespace dtrain::backend::cpu
