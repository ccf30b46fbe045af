// What the executable asks of a GPU. One thread at a time. Work is done in the order in which it was given; only
// download() and synchronize() wait for it. Throws Error naming the work when the GPU reports a failure.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <dtrain/base/accelerator.hpp>

#include "call.hpp"
#include "recording_facts.hpp"

namespace dtrain::backend::cuda {

// Work that is done again and again on the same memory. Must not outlive its device.
class Recording {
 public:
  virtual ~Recording() = default;
  virtual void run() = 0;
  // Where the call EventMarker{number} stands in what run() gave last.
  virtual DeviceMark mark(int number) const = 0;
  virtual RecordingFacts facts() const = 0;
};

struct CopyPiece {
  void* to;
  const void* from;
  std::size_t bytes;
};

// Copies to the device beside its work. Must not outlive its device.
class SideCopy {
 public:
  virtual ~SideCopy() = default;
  // Begins when the work that was given so far is done. Every `from` stays as it is until work given after join() is.
  virtual void begin(const std::vector<CopyPiece>& pieces) = 0;
  virtual void wait() = 0;  // until what began last is done, on the host
  virtual void join() = 0;  // work that is given from now on waits for what began last
};

class Device {
 public:
  virtual ~Device() = default;
  virtual std::uint64_t free_bytes() const = 0;  // for executables: without what libraries will take

  // Aligned to 256 bytes, any content.
  virtual std::byte* allocate(std::uint64_t bytes) = 0;
  virtual void release(std::byte* memory) noexcept = 0;

  // On the host, aligned to 64 bytes, from where a SideCopy need not wait. Released by any thread.
  virtual std::byte* allocate_host(std::uint64_t bytes) = 0;
  virtual void release_host(std::byte* memory) noexcept = 0;

  virtual void upload(void* to, const void* from, std::size_t bytes) = 0;  // `from` may change afterwards
  virtual void download(void* to, const void* from, std::size_t bytes) = 0;
  virtual void synchronize() = 0;
  // Behind the work that was given so far. To be waited for before the next mark is made.
  virtual DeviceMark mark() = 0;
  virtual void wait_for(DeviceMark mark) = 0;  // work that is given from now on begins when it is reached
  virtual std::unique_ptr<SideCopy> side_copy() = 0;
  virtual std::unique_ptr<Recording> record(std::vector<Call> calls) = 0;
  // What the calls take, by the device's own clock: the mean of so many times in one go. Whatever is done only at first
  // (plans, loading, capture) was done before the clock starts.
  virtual double seconds_of(std::vector<Call> calls, int times) = 0;
  // A convolution leaves its `moments`, or computes what it reads of its `normed` input, in no pass of their own.
  virtual bool fuses(const Convolution& work) const = 0;
  virtual std::uint64_t workspace_bytes() const = 0;  // reserved for libraries, not free any more
};

// All memory of an executable, as one piece.
class DeviceMemory {
 public:
  DeviceMemory(Device& device, std::uint64_t bytes) : device_(device), bytes_(bytes), data_(device.allocate(bytes)) {}
  ~DeviceMemory() { device_.release(data_); }
  DeviceMemory(const DeviceMemory&) = delete;
  std::byte* data() const { return data_; }
  std::uint64_t size() const { return bytes_; }

 private:
  Device& device_;
  std::uint64_t bytes_;
  std::byte* data_;
};

template <typename T>
void upload_all(Device& device, void* to, const std::vector<T>& values) {
  if (!values.empty()) device.upload(to, values.data(), values.size() * sizeof(T));
}

template <typename T>
void download_all(Device& device, std::vector<T>& values, const void* from) {
  if (!values.empty()) device.download(values.data(), from, values.size() * sizeof(T));
}

}  // namespace dtrain::backend::cuda
