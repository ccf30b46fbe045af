#include <dtrain/base/pipe.hpp>

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include <dtrain/base/error.hpp>

#include "common/temporary_folder.hpp"

namespace dtrain {
namespace {

std::string content_of(const FileDescriptor& file) { return read_file("/proc/self/fd/" + std::to_string(file.get())); }

TEST(Pipe, AByteIsDistinguishedFromTheEnd) {
  Pipe pipe = make_pipe();
  EXPECT_EQ(::write(pipe.write_end.get(), "x", 1), 1);
  EXPECT_TRUE(wait_for_byte(pipe.read_end));
  pipe.write_end = FileDescriptor();
  EXPECT_FALSE(wait_for_byte(pipe.read_end));
}

TEST(MemoryFile, HoldsMoreThanAPipe) {
  const std::string text(1 << 20, 'x');
  EXPECT_EQ(content_of(memory_file(text)), text);
  EXPECT_EQ(content_of(memory_file()), "");
}

TEST(OpenLog, AppendsToAFileAndFollowsNoLink) {
  const TemporaryFolder folder;
  write_file_atomic(folder / "log", "a");
  EXPECT_EQ(::write(open_log(folder / "log").get(), "b", 1), 1);
  EXPECT_EQ(read_file(folder / "log"), "ab");
  std::filesystem::create_symlink(folder / "log", folder / "link");
  std::filesystem::create_symlink(folder / "none", folder / "nowhere");
  EXPECT_THROW(open_log(folder / "link"), Error);
  EXPECT_THROW(open_log(folder / "nowhere"), Error);
  EXPECT_FALSE(std::filesystem::exists(folder / "none"));
  EXPECT_TRUE(open_log("/dev/null"));
}

}  // namespace
}  // namespace dtrain
