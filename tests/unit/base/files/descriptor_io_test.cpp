#include <dtrain/base/descriptor_io.hpp>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <span>
#include <string>
#include <thread>

#include <dtrain/base/pipe.hpp>

#include "common/small_files.hpp"

namespace dtrain {
namespace {

struct Moved {
  std::size_t bytes;
  int error;
};

Moved with_errno(std::size_t bytes) { return {bytes, errno}; }

FileDescriptor new_file(const Path& path) {
  return FileDescriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
}

std::span<std::byte> room_in(std::string& text) { return std::as_writable_bytes(std::span(text)); }

std::atomic<int> interruptions;

// A system call that waits is interrupted by SIGUSR1, not resumed.
class Interruptions {
 public:
  Interruptions() {
    struct sigaction action {};
    action.sa_handler = [](int) { ++interruptions; };
    ::sigaction(SIGUSR1, &action, &former_);
  }
  ~Interruptions() { ::sigaction(SIGUSR1, &former_, nullptr); }
  Interruptions(const Interruptions&) = delete;

 private:
  struct sigaction former_ {};
};

void wait_until_full(const FileDescriptor& pipe) {
  const int capacity = ::fcntl(pipe.get(), F_GETPIPE_SZ);
  for (int held = 0; held < capacity; ::ioctl(pipe.get(), FIONREAD, &held)) std::this_thread::yield();
}

// The first signal ends a write that moved a part, the others writes that moved nothing.
TEST(WriteAll, GoesOnAfterAPartAndAfterASignal) {
  const Interruptions during_this_test;
  Pipe pipe = make_pipe();
  const int before = interruptions;
  const std::string text(1 << 20, 'x');
  Moved moved{};
  std::thread writer([&] {
    moved = with_errno(write_all(pipe.write_end, bytes_of(text)));
    pipe.write_end = FileDescriptor();
  });
  wait_until_full(pipe.read_end);
  for (int sent = 0; sent < 3; ++sent) {
    ::pthread_kill(writer.native_handle(), SIGUSR1);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));  // it waits again
  }
  const std::string received = read_file(pipe.read_end, "the pipe");
  writer.join();
  EXPECT_GT(interruptions, before);
  EXPECT_TRUE(received == text) << received.size();
  EXPECT_EQ(moved.bytes, text.size()) << moved.error;
}

TEST(WriteAll, SaysHowMuchFittedAndWhyNotMore) {
  const ScratchFolder scratch;
  const FileDescriptor file = new_file(scratch.path() / "a");
  const SmallFiles disk;
  disk.limit(10);
  const Moved first = with_errno(write_all(file, bytes_of("0123456789abc")));
  const Moved second = with_errno(write_all(file, bytes_of("d")));
  disk.lift();
  EXPECT_EQ(first.bytes, 10u);
  EXPECT_EQ(first.error, EFBIG);
  EXPECT_EQ(second.bytes, 0u);
  EXPECT_EQ(second.error, EFBIG);
  EXPECT_EQ(read_file(scratch.path() / "a"), "0123456789");
}

TEST(WriteAll, OfNothingIsDone) { EXPECT_EQ(write_all(FileDescriptor(), {}), 0u); }

TEST(WriteAllAt, LeavesThePositionAndSaysHowMuchFitted) {
  const ScratchFolder scratch;
  const FileDescriptor file = new_file(scratch.path() / "a");
  EXPECT_EQ(write_all(file, bytes_of("01234")), 5u);
  EXPECT_EQ(write_all_at(file, 1, bytes_of("ab")), 2u);
  const SmallFiles disk;
  disk.limit(10);
  const Moved moved = with_errno(write_all_at(file, 8, bytes_of("xyz")));
  disk.lift();
  EXPECT_EQ(moved.bytes, 2u);
  EXPECT_EQ(moved.error, EFBIG);
  EXPECT_EQ(write_all(file, bytes_of("567")), 3u);
  EXPECT_EQ(read_file(scratch.path() / "a"), "0ab34567xy");
}

TEST(ReadAllAt, TellsTheEndOfAFileFromAFailure) {
  const ScratchFolder scratch;
  write_file_atomic(scratch.path() / "a", "0123456789");
  const FileDescriptor file(::open((scratch.path() / "a").c_str(), O_RDONLY | O_CLOEXEC));
  std::string text(4, '-');
  EXPECT_EQ(read_all_at(file, 3, room_in(text)), 4u);
  EXPECT_EQ(text, "3456");
  const Moved at_the_end = with_errno(read_all_at(file, 8, room_in(text)));
  EXPECT_EQ(at_the_end.bytes, 2u);
  EXPECT_EQ(at_the_end.error, 0);
  EXPECT_EQ(text, "8956");
  const Pipe pipe = make_pipe();
  const Moved of_a_pipe = with_errno(read_all_at(pipe.read_end, 0, room_in(text)));
  EXPECT_EQ(of_a_pipe.bytes, 0u);
  EXPECT_EQ(of_a_pipe.error, ESPIPE);
}

}  // namespace
}  // namespace dtrain
