#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <thread>

#include <dtrain/base/error.hpp>

#include "common/temporary_folder.hpp"
#include "s3/part_file.hpp"

namespace dtrain::net {
namespace {

// From now on this thread finds itself on a file system that reserves nothing. False: this kernel filters no system
// calls.
bool refuse_reservations() {
  std::array<sock_filter, 4> program{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fallocate, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog filter{.len = program.size(), .filter = program.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST(PartFile, WritesNothingToReserveRoomAndStillSeesThatThereIsNone) {
  const TemporaryFolder folder;
  constexpr std::uint64_t kPart = 8 << 20, kSize = 8 * kPart, kTooMuch = std::uint64_t{1} << 60;
  bool refused = false;
  std::thread([&] {
    refused = refuse_reservations();
    if (!refused) return;
    const PartFile file(folder / "a", "s3://b/a", {.size = kSize}, kPart);
    struct stat status {};
    EXPECT_EQ(::stat((folder / "a.part").c_str(), &status), 0);
    EXPECT_EQ(static_cast<std::uint64_t>(status.st_size), kSize);
    EXPECT_LT(static_cast<std::uint64_t>(status.st_blocks) * 512, kPart);
    try {
      const PartFile large(folder / "b", "s3://b/b", {.size = kTooMuch}, kTooMuch);
      ADD_FAILURE() << "no disk has so much room";
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("b.part: cannot reserve"), text.npos) << text;
      EXPECT_NE(text.find("No space left on device"), text.npos) << text;
    }
  }).join();
  if (!refused) GTEST_SKIP() << "this kernel filters no system calls";
}

void download_text(const Path& to, const std::string& text) {
  PartFile file(to, "s3://b/a", {.size = text.size()}, 8);
  file.write(0, bytes_of(text));
  file.complete();
}

TEST(PartFile, ReplacesAFileBehindLinksAndKeepsItsPermissions) {
  using std::filesystem::perms;
  const TemporaryFolder folder;
  make_folder(folder / "in");
  write_file_atomic(folder / "in/secret", "old");
  for (const perms mode : {perms::owner_read | perms::owner_write, perms::owner_read}) {
    std::filesystem::permissions(folder / "in/secret", mode);
    std::filesystem::remove(folder / "link");
    std::filesystem::create_symlink("in/secret", folder / "link");
    download_text(folder / "link", "new");
    EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
    EXPECT_EQ(read_file(folder / "in/secret"), "new");
    EXPECT_EQ(std::filesystem::status(folder / "in/secret").permissions(), mode);
  }
}

TEST(PartFile, RefusesATargetThatIsNoRegularFile) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  make_folder(folder / "folder");
  std::filesystem::create_symlink("pipe", folder / "link");
  for (const Path& to : {folder / "pipe", folder / "folder", folder / "link", Path("/proc/self/fd/0")}) {
    EXPECT_THROW(download_text(to, "new"), UsageError) << to;
  }
  EXPECT_TRUE(std::filesystem::is_fifo(folder / "pipe"));
  EXPECT_FALSE(std::filesystem::exists(folder / "pipe.part"));
}

}  // namespace
}  // namespace dtrain::net
