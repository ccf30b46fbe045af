#include "memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <new>

#include "refusal.hpp"

namespace dtrain::testing::cuda_runtime {
namespace {

constexpr std::size_t kAlignment = 256;  // that CUDA promises
constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr int kPoison = 0xff;  // a NaN in every type

std::size_t rounded_up(std::size_t bytes, std::size_t step) { return (bytes + step - 1) / step * step; }
std::size_t page_size() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

// With a page before and one behind that nobody may touch. In huge pages: all of them are closed and opened again with
// each piece of work, and with small ones that took most of the time of the tests.
std::byte* map_pages(std::size_t bytes) {
  const std::size_t guard = page_size(), room = kHugePage + bytes + guard;
  void* const all = ::mmap(nullptr, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (all == MAP_FAILED) throw std::bad_alloc();
  auto* const first = static_cast<std::byte*>(all);
  const std::size_t before = kHugePage - reinterpret_cast<std::uintptr_t>(first) % kHugePage;  // a page at least
  std::byte* const pages = first + before;
  if (before > guard) ::munmap(first, before - guard);
  if (const std::byte* const end = pages + bytes + guard; end < first + room) {
    ::munmap(pages + bytes + guard, static_cast<std::size_t>(first + room - end));
  }
  ::madvise(pages, bytes, MADV_HUGEPAGE);
  ::mprotect(pages, bytes, PROT_READ | PROT_WRITE);
  return pages;
}

const char* name_of(Kind kind) { return kind == Kind::gpu ? "memory of a GPU" : "page-locked memory"; }

}  // namespace

Memory::~Memory() {
  for (const auto& [first, place] : places_) ::munmap(place.pages - page_size(), place.page_bytes + 2 * page_size());
}

std::byte* Memory::reserve(Kind kind, int gpu, std::size_t bytes, std::size_t limit) {
  if (kind == Kind::gpu && used(gpu) + bytes > limit) return nullptr;
  const std::size_t held = rounded_up(bytes, kAlignment), page_bytes = rounded_up(held, page_size());
  std::byte* const pages = map_pages(page_bytes);
  std::memset(pages, kPoison, page_bytes);
  if (kind == Kind::gpu) ::mprotect(pages, page_bytes, PROT_NONE);
  std::byte* const first = pages + (page_bytes - held);
  places_[first] = {kind, gpu, bytes, pages, page_bytes};
  return first;
}

void Memory::release(void* memory, Kind kind) {
  const auto place = places_.find(static_cast<const std::byte*>(memory));
  if (place == places_.end()) throw Refusal{cudaErrorInvalidValue, "this is no reservation"};
  Reservation& of = place->second;
  if (of.released) throw Refusal{cudaErrorInvalidValue, "this was released before"};
  if (of.kind != kind) throw Refusal{cudaErrorInvalidValue, fmt::format("this is {}", name_of(of.kind))};
  ::mprotect(of.pages, of.page_bytes, PROT_READ | PROT_WRITE);
  const bool clean = end_is_clean(place->first, of);
  ::madvise(of.pages, of.page_bytes, MADV_DONTNEED);
  ::mprotect(of.pages, of.page_bytes, PROT_NONE);
  of.released = true;
  if (!clean) throw Refusal{cudaSuccess, fmt::format("work wrote behind the end of these {} bytes", of.bytes)};
}

// Further away there is a page that nobody may touch.
bool Memory::end_is_clean(const std::byte* first, const Reservation& of) {
  for (std::size_t i = of.bytes; i < rounded_up(of.bytes, kAlignment); ++i) {
    if (first[i] != static_cast<std::byte>(kPoison)) return false;
  }
  return true;
}

Memory::Places::const_iterator Memory::before(const void* address) const {
  auto place = places_.upper_bound(static_cast<const std::byte*>(address));
  if (place == places_.begin()) return places_.end();
  --place;
  return static_cast<const std::byte*>(address) < place->second.pages + place->second.page_bytes ? place
                                                                                                 : places_.end();
}

const Reservation* Memory::find(const void* first, std::size_t bytes) const {
  const auto place = before(first);
  if (place == places_.end()) return nullptr;
  const Reservation& of = place->second;
  if (of.released) throw Refusal{cudaErrorInvalidValue, fmt::format("{} that was released", name_of(of.kind))};
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(first) - place->first);
  if (offset + bytes > of.bytes) {
    throw Refusal{cudaErrorInvalidValue, fmt::format("bytes {} to {} of {} that holds {}", offset, offset + bytes,
                                                     name_of(of.kind), of.bytes)};
  }
  return &of;
}

std::size_t Memory::used(int gpu) const {
  std::size_t bytes = 0;
  for (const auto& [first, of] : places_) bytes += of.kind == Kind::gpu && of.gpu == gpu && !of.released ? of.bytes : 0;
  return bytes;
}

std::size_t Memory::reservations() const {
  std::size_t number = 0;
  for (const auto& [first, of] : places_) number += of.released ? 0 : 1;
  return number;
}

std::string Memory::describe(const void* address) const {
  const auto place = before(address);
  if (place == places_.end()) return "memory that is nobody's, or behind a reservation's end";
  return fmt::format("{} of {} bytes{}", name_of(place->second.kind), place->second.bytes,
                     place->second.released ? ", which was released" : "");
}

void Memory::open_gpus(bool open) const {
  for (const auto& [first, of] : places_) {
    if (of.kind == Kind::gpu && !of.released) {
      ::mprotect(of.pages, of.page_bytes, open ? PROT_READ | PROT_WRITE : PROT_NONE);
    }
  }
}

}  // namespace dtrain::testing::cuda_runtime
