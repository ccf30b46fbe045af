// The handler may interrupt any code of any thread, so it uses nothing but atomics, memcpy, and calls that
// signal-safety(7) lists. A mapping that faults is in use, so its slot does not change while the handler reads it;
// other slots may change at any time, and only the atomics of these are read.
#include "mapping_faults.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string_view>

#include <dtrain/base/error.hpp>

namespace dtrain {
namespace {

constexpr std::size_t kMappingSlots = 1024, kLongestShownPath = 1023;
constexpr std::string_view kBefore = "dtrain: ";
constexpr std::string_view kAfter =
    ": changed or could not be read while it was in use\nhint: put it back and run again\n";

struct MappingSlot {
  std::atomic<bool> is_taken{false};
  std::atomic<std::uintptr_t> begin{0};  // 0: the rest is not valid
  std::atomic<std::size_t> size{0};
  std::size_t path_size = 0;
  std::array<char, kLongestShownPath> path{};
};

std::array<MappingSlot, kMappingSlots> mapping_slots;
std::atomic<std::size_t> next_mapping_slot{0};
std::atomic_flag is_reporting;
struct sigaction former_action {};

const MappingSlot* slot_at(std::uintptr_t address) {
  for (const MappingSlot& slot : mapping_slots) {
    const std::uintptr_t begin = slot.begin.load(std::memory_order_acquire);
    if (begin != 0 && address >= begin && address - begin < slot.size) return &slot;
  }
  return nullptr;
}

[[noreturn]] void report_and_end(const MappingSlot& slot) {
  while (is_reporting.test_and_set()) ::pause();  // another thread reports and ends the process
  std::array<char, kBefore.size() + kLongestShownPath + kAfter.size()> text;
  std::size_t size = 0;
  for (const std::string_view part : {kBefore, std::string_view(slot.path.data(), slot.path_size), kAfter}) {
    std::memcpy(text.data() + size, part.data(), part.size());
    size += part.size();
  }
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), size);
  ::_exit(static_cast<int>(ExitCode::failed));
}

void on_bus_error(int signal, siginfo_t* fault, void*) {
  const bool is_sent = fault->si_code <= 0;  // by kill(2), which gives no address
  const MappingSlot* slot = is_sent ? nullptr : slot_at(reinterpret_cast<std::uintptr_t>(fault->si_addr));
  if (slot != nullptr) report_and_end(*slot);
  // The access is repeated on return, and faults again.
  ::sigaction(SIGBUS, &former_action, nullptr);
  if (is_sent) ::raise(signal);
}

void install_handler() {
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, &former_action);
}

// A name may hold line ends and control sequences.
void copy_path(MappingSlot& slot, const std::string& path) {
  slot.path_size = std::min(path.size(), kLongestShownPath);
  for (std::size_t i = 0; i < slot.path_size; ++i) {
    const auto byte = static_cast<unsigned char>(path[i]);
    slot.path[i] = byte < ' ' || byte == 0x7f ? '?' : path[i];
  }
}

}  // namespace

int watch_mapping(ByteView mapped, const Path& path) {
  static std::once_flag installed;
  std::call_once(installed, install_handler);
  for (std::size_t tried = 0; tried < kMappingSlots; ++tried) {
    const std::size_t number = next_mapping_slot.fetch_add(1, std::memory_order_relaxed) % kMappingSlots;
    MappingSlot& slot = mapping_slots[number];
    if (slot.is_taken.exchange(true, std::memory_order_acquire)) continue;
    copy_path(slot, path.string());
    slot.size = mapped.size();
    slot.begin.store(reinterpret_cast<std::uintptr_t>(mapped.data()), std::memory_order_release);
    return static_cast<int>(number);
  }
  return kNoMappingSlot;
}

void forget_mapping(int slot) {
  if (slot == kNoMappingSlot) return;
  mapping_slots[static_cast<std::size_t>(slot)].begin.store(0, std::memory_order_release);
  mapping_slots[static_cast<std::size_t>(slot)].is_taken.store(false, std::memory_order_release);
}

}  // namespace dtrain
