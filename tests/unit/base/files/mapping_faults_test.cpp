#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include <dtrain/base/files.hpp>
#include <dtrain/base/pipe.hpp>

namespace dtrain {
namespace {

constexpr std::size_t kLength = 3 << 16;  // several pages

struct EndOfChild {
  int status = 0;
  std::string said;
};

// Runs the action in a child, which otherwise ends with 0.
template <typename Action>
EndOfChild run_in_child(Action action) {
  Pipe pipe = make_pipe();
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(pipe.write_end.get(), STDERR_FILENO);
    action();
    ::_exit(0);
  }
  pipe.write_end = FileDescriptor();
  EndOfChild end;
  char some[1024];
  for (ssize_t got = 0; (got = ::read(pipe.read_end.get(), some, sizeof some)) > 0;)
    end.said.append(some, static_cast<std::size_t>(got));
  ::waitpid(child, &end.status, 0);
  return end;
}

void touch_last(const std::byte* data) {
  const volatile std::byte* last = data + kLength - 1;
  [[maybe_unused]] const std::byte read = *last;
}

class MappingFaults : public testing::Test {
 protected:
  MappingFaults() { write_file_atomic(file_, std::string(kLength, 'x')); }
  const ScratchFolder folder_;
  const Path file_ = folder_.path() / "a\tfile";
};

TEST_F(MappingFaults, EndTheProcessWithAMessageThatNamesTheFile) {
  const EndOfChild end = run_in_child([&] {
    MappedFile mapped(file_);
    const MappedFile moved(std::move(mapped));
    if (::truncate(file_.c_str(), 0) == 0) touch_last(moved.bytes().data());
  });
  ASSERT_TRUE(WIFEXITED(end.status));
  EXPECT_EQ(WEXITSTATUS(end.status), 1);
  EXPECT_EQ(end.said, "dtrain: " + (folder_.path() / "a?file").string() +
                          ": changed or could not be read while it was in use\nhint: put it back and run again\n");
}

// A sanitizer reports the signal in its way.
TEST_F(MappingFaults, OutsideOfTheMappedFilesEndTheProcessAsBefore) {
  const EndOfChild end = run_in_child([&] {
    { const MappedFile other(file_); }
    const FileDescriptor fd(::open(file_.c_str(), O_RDONLY | O_CLOEXEC));
    const void* mapped = ::mmap(nullptr, kLength, PROT_READ, MAP_SHARED, fd.get(), 0);
    if (::truncate(file_.c_str(), 0) == 0) touch_last(static_cast<const std::byte*>(mapped));
  });
  EXPECT_NE(end.status, 0);
  EXPECT_EQ(end.said.find("changed or could not be read"), std::string::npos) << end.said;
}

TEST_F(MappingFaults, ASignalThatAnotherProcessSendsIsNone) {
  const EndOfChild end = run_in_child([&] {
    const MappedFile mapped(file_);
    ::raise(SIGBUS);
  });
  EXPECT_NE(end.status, 0);
  EXPECT_EQ(end.said.find("changed or could not be read"), std::string::npos) << end.said;
}

}  // namespace
}  // namespace dtrain
