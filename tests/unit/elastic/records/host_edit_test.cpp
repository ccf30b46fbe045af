#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <dtrain/base/error.hpp>

#include "elastic/temporary_folder.hpp"
#include "records/host_edit.hpp"

namespace dtrain::elastic {
namespace {

constexpr int kSlots = 2;

class HostEditTest : public testing::Test {
 protected:
  std::vector<std::string> edit(const char* request) const {
    return edit_host_file(file_, present_, kSlots, Json::parse(request, "an edit"));
  }
  const TemporaryFolder folder_;
  const Path file_ = folder_ / "host_worker";
  const std::string whole_ = "w1\nw2 slots=3\nw3\n";
  const std::vector<HostLine> present_ = parse_host_file(whole_, kSlots).hosts;
};

TEST_F(HostEditTest, RemovesNoHostThatTheRequestDoesNotName) {
  const std::vector<std::pair<std::string, std::string>> damages = {
      {"", whole_},                          // lost
      {"w3\n", "w3\nw1\nw2 slots=3\n"},      // an edit that the job refused
      {"w1\nw2 slo", "w1\nw2 slo\nw3\n"},    // a damaged line that means w2
      {"w1\nw2", whole_},                    // cut off
      {"w1\nneighbour", whole_},             // half a name, perhaps
      {std::string("w1\n\0\0", 5), whole_},  // of a machine that crashed
  };
  for (const auto& [text, mended] : damages) {
    write_in_place(file_, text);
    EXPECT_FALSE(edit(R"({"add": ["w4"]})").empty()) << text;
    EXPECT_EQ(read_file(file_), mended + "w4\n") << text;
  }
}

TEST_F(HostEditTest, LeavesTheRestOfAGoodFileAsItIs) {
  for (const char* text : {"# ours\nw3\n\nw1\nw2 slots=4\n", "w1\nw2 slots=3\nw3"}) {
    write_in_place(file_, text);
    EXPECT_TRUE(edit(R"({"add": ["w4"]})").empty()) << text;
    const bool has_end = std::string_view(text).ends_with('\n');
    EXPECT_EQ(read_file(file_), text + std::string(has_end ? "" : "\n") + "w4\n");
  }
}

TEST_F(HostEditTest, MayNameHostsThatALostFileListed) {
  edit(R"({"add": ["w2 slots=1"], "remove": ["w3"]})");
  EXPECT_EQ(read_file(file_), "w1\nw2 slots=1\n");
}

TEST_F(HostEditTest, SaysWhatToDoWithAFolderInPlaceOfTheFile) {
  make_folder(file_);
  try {
    edit(R"({"add": ["w4"]})");
    FAIL() << "it must throw";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("Is a directory"), std::string::npos) << error.what();
    EXPECT_NE(error.hint().find("move it away"), std::string::npos) << error.hint();
  }
  std::filesystem::remove(file_);
  edit(R"({"add": ["w4"]})");
  EXPECT_EQ(read_file(file_), whole_ + "w4\n");
}

TEST_F(HostEditTest, GivesUpNoFileThatCannotBeReadNow) {
  write_file_atomic(file_, whole_);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  std::string hint = "it must throw";
  try {
    edit(R"({"add": ["w4"]})");
  } catch (const Error& error) {
    hint = error.hint();
  }
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_NE(hint, "it must throw");
  EXPECT_EQ(hint.find("move it away"), hint.npos) << hint;
  EXPECT_EQ(read_file(file_), whole_);
}

TEST_F(HostEditTest, KeepsThePermissionsAndTheOwnerOfTheFile) {
  write_file_atomic(file_, whole_);
  ASSERT_EQ(::chmod(file_.c_str(), 0664), 0);
  constexpr uid_t kStranger = 65'534;
  const uid_t owner = ::geteuid() == 0 ? kStranger : ::geteuid();
  ASSERT_EQ(::chown(file_.c_str(), owner, static_cast<gid_t>(-1)), 0);
  edit(R"({"add": ["w4"]})");
  struct stat status {};
  ASSERT_EQ(::stat(file_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0664u);
  EXPECT_EQ(status.st_uid, owner);
}

TEST_F(HostEditTest, WritesToTheFileThatALinkLeadsTo) {
  make_folder(folder_ / "lists");
  const Path target = folder_ / "lists/hosts";
  std::filesystem::create_symlink("lists/hosts", file_);
  for (int time = 0; time < 2; ++time) {  // the second time the target is missing
    if (time == 0) write_file_atomic(target, whole_);
    edit(R"({"add": ["w4"]})");
    EXPECT_TRUE(std::filesystem::is_symlink(file_));
    EXPECT_EQ(read_file(target), whole_ + "w4\n");
    std::filesystem::remove(target);
  }
}

TEST_F(HostEditTest, FollowsNoLinkOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may give a link to another user";
  const Path target = folder_ / "target";
  write_file_atomic(target, whole_);
  std::filesystem::create_symlink(target, file_);
  ASSERT_EQ(::lchown(file_.c_str(), 65'534, static_cast<gid_t>(-1)), 0);
  edit(R"({"add": ["w4"]})");
  EXPECT_FALSE(std::filesystem::is_symlink(file_));
  EXPECT_EQ(read_file(target), whole_);
}

TEST_F(HostEditTest, LeavesTheJobAHost) {
  write_file_atomic(file_, whole_);
  EXPECT_THROW(edit(R"({"remove": ["w1", "w2", "w3"], "any_number": true})"), UsageError);
  EXPECT_EQ(read_file(file_), whole_);
}

// A command in it would lack the job folder, which the coordinator does not know as the user does.
TEST_F(HostEditTest, ItsHintsHoldNoCommandThatLacksTheJobFolder) {
  write_file_atomic(file_, whole_);
  const auto hint_of = [&](const char* request) -> std::string {
    try {
      edit(request);
    } catch (const UsageError& error) {
      return error.hint();
    }
    return "";
  };
  EXPECT_EQ(hint_of(R"({"remove": ["w1", "w2"]})"), "the same command with setting 'yes' removes w1, w2 all the same");
  EXPECT_EQ(hint_of(R"({"remove": ["w1", "w2", "w3"], "any_number": true})"),
            "`dtrain stop`, with the same setting 'job-dir', ends the job");
}

}  // namespace
}  // namespace dtrain::elastic
