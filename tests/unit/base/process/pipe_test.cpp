#include <dtrain/base/pipe.hpp>

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

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

}  // namespace
}  // namespace dtrain
