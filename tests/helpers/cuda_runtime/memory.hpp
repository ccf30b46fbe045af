// Memory of GPUs and page-locked memory of the host. A GPU's can be touched while its work runs and at no other time;
// what was released, and what lies around a reservation, at none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace dtrain::testing::cuda_runtime {

enum class Kind { gpu, page_locked, pageable };

struct Reservation {
  Kind kind = Kind::gpu;
  int gpu = 0;
  std::size_t bytes = 0;
  std::byte* pages = nullptr;  // that can be touched at all, the reservation's end being theirs up to its alignment
  std::size_t page_bytes = 0;
  bool released = false;
};

class Memory {
 public:
  ~Memory();
  // Filled with NaNs. nullptr: the GPU has no more.
  std::byte* reserve(Kind kind, int gpu, std::size_t bytes, std::size_t limit);
  // Takes back what reserve() gave. Throws Refusal.
  void release(void* memory, Kind kind);
  // The reservation that holds these bytes, nullptr where they are pageable. Throws Refusal where they are released or
  // go beyond a reservation's end.
  const Reservation* find(const void* first, std::size_t bytes) const;
  std::size_t used(int gpu) const;
  std::size_t reservations() const;  // not released
  // For people, also while something else is under way.
  std::string describe(const void* address) const;

  void open_gpus(bool open) const;

 private:
  using Places = std::map<const std::byte*, Reservation>;
  Places::const_iterator before(const void* address) const;
  static bool end_is_clean(const std::byte* first, const Reservation& reservation);
  Places places_;  // by their first byte
};

}  // namespace dtrain::testing::cuda_runtime
