#include "memory.hpp"

#include <malloc.h>
#include <sys/mman.h>

#include <charconv>
#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>

namespace dtrain::board {
namespace {

constexpr int kMostArenas = 2;
constexpr int kLargePiece = 4 << 20;  // bytes: more than a file is read in at a time

// A line of /proc/self/maps: "BEGIN-END r-xp OFFSET DEVICE INODE  /PATH". Such pages are never written.
void give_back_code(std::string_view line) {
  std::uintptr_t begin = 0, end = 0;
  const char* const last = line.data() + line.size();
  const auto [dash, bad_begin] = std::from_chars(line.data(), last, begin, 16);
  if (bad_begin != std::errc() || dash == last || *dash != '-') return;
  const auto [rest, bad_end] = std::from_chars(dash + 1, last, end, 16);
  if (bad_end != std::errc() || end <= begin) return;
  const std::string_view words(rest, static_cast<std::size_t>(last - rest));
  if (!words.starts_with(" r-xp ") || words.find(" /") == words.npos) return;
  ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);  // NOLINT: addresses are what the file holds
}

}  // namespace

// Between two pieces of a file the allocator keeps their memory, which would be cleared for each of them again.
void share_allocations() {
  ::mallopt(M_ARENA_MAX, kMostArenas);
  ::mallopt(M_MMAP_THRESHOLD, kLargePiece);
  ::mallopt(M_TRIM_THRESHOLD, 2 * kLargePiece);
}

void give_back_free_memory() { ::malloc_trim(0); }

void give_back_memory() {
  give_back_free_memory();
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) give_back_code(line);
}

}  // namespace dtrain::board
