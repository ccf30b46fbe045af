// Decoded pictures of a training set, each of which is decoded once while the memory for them lasts.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <dtrain/data/loader.hpp>

namespace dtrain::data {

// A slot for each record, which is filled at most once and never emptied: an epoch takes each record once and in random
// order, so that replacing a picture by another one gains nothing.
//
// The threads of a loader call find() and keep() at any time; no call waits. A slot is an atomic pointer: keep()
// publishes a finished picture by a release, find() acquires it, and the picture never changes from then on, so that
// what find() gives stays valid until the destructor. The destructor runs after the threads have ended. Where two
// threads decode one record at the same time, as the copies of a record in an epoch make them do, the first picture
// stays and the other one is dropped. A thread reserves the bytes of a picture in `used_` before it copies the picture
// and returns them if the picture is dropped, so that all pictures together never exceed the budget. The counts order
// nothing between threads.
class DecodedPictures {
 public:
  // `budget`: bytes for the slots of all records, and for the pictures with what keeping them costs besides pixels.
  DecodedPictures(std::size_t records, std::uint64_t budget);
  ~DecodedPictures();
  DecodedPictures(const DecodedPictures&) = delete;
  DecodedPictures& operator=(const DecodedPictures&) = delete;

  const Image* find(std::uint32_t record) const;  // null: it is not kept
  // Keeps a copy of the picture that was decoded, where there is room for it and the record has none.
  void keep(std::uint32_t record, const Image& picture);
  KeptPictures kept() const;

 private:
  bool reserve(std::uint64_t bytes);

  std::vector<std::atomic<const Image*>> slots_;
  const std::uint64_t budget_;  // without the slots
  std::atomic<std::uint64_t> used_ = 0, pictures_ = 0, decodings_ = 0;
};

// None for a loader that keeps nothing.
std::unique_ptr<DecodedPictures> decoded_pictures(std::size_t records, const LoaderOptions& options);

}  // namespace dtrain::data
