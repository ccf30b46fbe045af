#include <dtrain/base/machine.hpp>

#include <gtest/gtest.h>

#include "common/temporary_folder.hpp"

namespace dtrain {
namespace {

TEST(Machine, HasMemory) {
  EXPECT_GT(memory_info("MemTotal"), std::uint64_t{1} << 20);
  EXPECT_LE(memory_info("MemAvailable"), memory_info("MemTotal"));
  EXPECT_EQ(memory_info("NoSuchLine"), 0u);
}

TEST(Machine, FindsTheFirstProgramOfTheName) {
  const TemporaryFolder folder;
  const Path first = folder.path() / "first", second = folder.path() / "second";
  for (const Path& place : {first, second}) {
    make_folder(place);
    write_file_atomic(place / "tool", "#!/bin/sh\n", 0644);
  }
  const std::string folders = first.string() + ":" + second.string();
  EXPECT_EQ(find_in_path("tool", folders), std::nullopt) << "it is not executable";
  std::filesystem::permissions(second / "tool", std::filesystem::perms::owner_all);
  EXPECT_EQ(find_in_path("tool", folders), second / "tool");
  EXPECT_EQ(find_in_path("tool", ""), std::nullopt);
}

}  // namespace
}  // namespace dtrain
