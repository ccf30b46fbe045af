#include <dtrain/base/stack_dump.hpp>

#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace dtrain {
namespace {

// The first thread that gets the signal asks each of the others in turn, and waits a little for each. All of it runs in
// signal handlers: only system calls, backtrace() that was called once before, and atomics.
std::atomic<int> turn{0};  // the thread that may write; 0: no dump goes on
constexpr int kMaxFrames = 64;
constexpr int kMillisecondsPerThread = 30;

int own_thread() { return static_cast<int>(::syscall(SYS_gettid)); }

void write_text(const char* text) { [[maybe_unused]] const ssize_t written = ::write(2, text, std::strlen(text)); }

void write_number(int number) {
  char digits[16];
  char* at = digits + sizeof digits - 1;
  *at = 0;
  do {
    *--at = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number > 0);
  write_text(at);
}

void write_own_stack() {
  void* frames[kMaxFrames];
  const int count = ::backtrace(frames, kMaxFrames);
  write_text("stack of thread ");
  write_number(own_thread());
  write_text("\n");
  ::backtrace_symbols_fd(frames, count, 2);
}

void wait_for_turn_back(int thread) {
  for (int i = 0; i < kMillisecondsPerThread && turn == thread; ++i) {
    const timespec pause{0, 1'000'000};
    ::nanosleep(&pause, nullptr);
  }
}

void ask(int thread, int self) {
  turn = thread;
  if (::syscall(SYS_tgkill, ::getpid(), thread, stack_dump_signal()) == 0) wait_for_turn_back(thread);
  turn = self;
}

struct DirectoryEntry {  // getdents64(2)
  std::uint64_t inode;
  std::int64_t offset;
  std::uint16_t size;
  unsigned char type;
  char name[1];
};

void ask_all_others(int self) {
  const int folder = ::open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  alignas(8) std::array<char, 4096> entries;
  for (;;) {
    const long size = ::syscall(SYS_getdents64, folder, entries.data(), entries.size());
    if (size <= 0) break;
    for (long at = 0; at < size;) {
      const auto* entry = reinterpret_cast<const DirectoryEntry*>(entries.data() + at);
      const int thread = std::atoi(entry->name);
      if (thread > 0 && thread != self) ask(thread, self);
      at += entry->size;
    }
  }
  ::close(folder);
}

void on_signal(int, siginfo_t* info, void*) {
  const int saved_error = errno;
  const int self = own_thread();
  const bool asked_by_thread = info->si_code == SI_TKILL;
  int nobody = 0;
  if (!asked_by_thread && turn.compare_exchange_strong(nobody, self)) {
    write_own_stack();
    ask_all_others(self);
    turn = 0;
  } else if (asked_by_thread && turn == self) {
    write_own_stack();
    int mine = self;
    turn.compare_exchange_strong(mine, -1);  // taken back by who asked
  }
  errno = saved_error;
}

}  // namespace

int stack_dump_signal() { return SIGRTMIN + 2; }

void dump_stacks_on_signal() {
  void* frame[1];
  ::backtrace(frame, 1);  // loads what it needs now, because a signal handler may not
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_RESTART | SA_SIGINFO;
  ::sigaction(stack_dump_signal(), &action, nullptr);
}

}  // namespace dtrain
