#include <dtrain/base/open_files.hpp>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <tuple>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/base/files.hpp>
#include <dtrain/base/pipe.hpp>

namespace dtrain {
namespace {

class OpenFilesTest : public testing::Test {
 protected:
  OpenFilesTest() { ::getrlimit(RLIMIT_NOFILE, &before_); }
  ~OpenFilesTest() override { ::setrlimit(RLIMIT_NOFILE, &before_); }

  void allow(rlim_t files) const {
    const rlimit few{files, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &few);
  }

  rlimit before_{};
};

template <typename Work>
std::string hint_of(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.hint();
  }
  return "it did not fail";
}

TEST_F(OpenFilesTest, AnErrorForWantOfDescriptorsNamesTheLimit) {
  const std::string hint = "raise the limit of the process on open files: ulimit -n, currently 0";
  allow(0);
  const std::string of_pipe = hint_of([] { std::ignore = make_pipe(); }), of_memory = hint_of([] { memory_file("x"); }),
                    of_log = hint_of([] { open_log("/dev/null"); }), of_file = hint_of([] { read_file("/dev/null"); });
  ::setrlimit(RLIMIT_NOFILE, &before_);
  EXPECT_EQ(of_pipe, hint);
  EXPECT_EQ(of_memory, hint);
  EXPECT_EQ(of_log, hint);
  EXPECT_EQ(of_file, hint);
  EXPECT_NE(hint_without_descriptors(ENFILE).find("fs.file-max"), std::string::npos);
  EXPECT_EQ(hint_without_descriptors(EACCES), "");
}

TEST_F(OpenFilesTest, CountsThoseThatAreFree) {
  const FileDescriptor highest(::dup(STDERR_FILENO));
  allow(static_cast<rlim_t>(highest.get()) + 20);
  const std::size_t free = free_descriptors();
  EXPECT_LE(free, static_cast<std::size_t>(highest.get()) + 20);
  std::vector<FileDescriptor> taken;
  for (int i = 0; i < 5; ++i) taken.emplace_back(::dup(STDERR_FILENO));
  EXPECT_EQ(free_descriptors(), free - 5);
  while (FileDescriptor next{::dup(STDERR_FILENO)}) taken.push_back(std::move(next));
  EXPECT_EQ(free_descriptors(), 0u);
}

}  // namespace
}  // namespace dtrain
