#include "cli/output_queue.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <string>
#include <thread>

#include <dtrain/base/files.hpp>
#include <dtrain/base/pipe.hpp>
#include <dtrain/base/stop.hpp>

#include "common/temporary_folder.hpp"

namespace dtrain::cli {
namespace {

using namespace std::chrono_literals;

const std::string kLine(1023, 'x');
constexpr int kMore = 1000;  // lines of 1 KiB: far more than a pipe holds

std::string numbered(int number) { return std::to_string(number) + " " + kLine + "\n"; }

std::string all_lines(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += numbered(i);
  return text;
}

std::string read_to_end(const FileDescriptor& pipe) {
  std::string text;
  char buffer[4096];
  for (ssize_t got; (got = ::read(pipe.get(), buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(got));
  return text;
}

TEST(OutputQueue, KeepsWhatAReaderThatStandsStillReadsLater) {
  Pipe pipe = make_pipe();
  std::string text;
  {
    OutputQueue queue;
    for (int i = 0; i < kMore; ++i) queue.put(pipe.write_end.get(), numbered(i));
    std::thread reader([&] { text = read_to_end(pipe.read_end); });
    queue.finish();
    pipe.write_end = FileDescriptor();
    reader.join();
  }
  EXPECT_EQ(text, all_lines(kMore));
}

TEST(OutputQueue, WaitsForASlowReader) {
  Pipe pipe = make_pipe();
  std::string text;
  std::thread reader([&] { text = read_to_end(pipe.read_end); });
  {
    OutputQueue queue({.bytes = 2048, .patience = 60s});
    for (int i = 0; i < kMore; ++i) queue.put(pipe.write_end.get(), numbered(i));
  }
  pipe.write_end = FileDescriptor();
  reader.join();
  EXPECT_EQ(text, all_lines(kMore));
}

TEST(OutputQueue, LosesLinesOnceItIsFullAndSaysHowMany) {
  Pipe pipe = make_pipe();
  std::string text;
  testing::internal::CaptureStderr();
  {
    OutputQueue queue({.bytes = 4096, .patience = 1ms, .flush_bound = 1ms});
    for (int i = 0; i < kMore; ++i) queue.put(pipe.write_end.get(), numbered(i));
    queue.flush();  // gives up
    std::thread reader([&] { text = read_to_end(pipe.read_end); });
    queue.finish();
    pipe.write_end = FileDescriptor();
    reader.join();
  }
  const auto shown = static_cast<int>(std::ranges::count(text, '\n'));
  EXPECT_LT(shown, kMore);
  EXPECT_EQ(text, all_lines(shown)) << "the first ones are whole";
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "dtrain: warning: " + std::to_string(kMore - shown) +
                                                        " lines are not shown, because nothing read the output\n");
}

TEST(OutputQueue, ASignalEndsTheWaitForAReaderOnceAndForAll) {
  const Pipe pipe = make_pipe();
  watch_stop_signal(SIGUSR1);
  OutputQueue queue;
  for (int i = 0; i < kMore; ++i) queue.put(pipe.write_end.get(), numbered(i));
  std::thread caller([] {
    std::this_thread::sleep_for(100ms);
    ::kill(::getpid(), SIGUSR1);
  });
  queue.finish();
  caller.join();
  EXPECT_EQ(stop_signal(), SIGUSR1);
  reset_stop_signal();
  std::signal(SIGUSR1, SIG_DFL);
}

TEST(OutputQueue, RemembersTheFirstErrorOfADescriptorAndGoesOn) {
  TemporaryFolder folder;
  const Path path = folder / "log";
  const FileDescriptor full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  OutputQueue queue;
  queue.put(full.get(), "lost\n");
  queue.put(file.get(), "kept\n");
  queue.finish();
  EXPECT_EQ(queue.error_of(full.get()), ENOSPC);
  EXPECT_EQ(queue.error_of(file.get()), 0);
  EXPECT_EQ(read_file(path), "kept\n");
}

}  // namespace
}  // namespace dtrain::cli
