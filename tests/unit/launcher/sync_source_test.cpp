#include <gtest/gtest.h>

#include <thread>

#include <dtrain/base/error.hpp>
#include <dtrain/launcher/sync.hpp>

#include "common/temporary_folder.hpp"

namespace dtrain::launcher {
namespace {

using Names = std::vector<std::string>;
using Clock = SyncSource::Clock;

class SyncSourceTest : public testing::Test {
 protected:
  void file(const std::string& name, const std::string& text = "text") const {
    make_folder((folder_ / name).parent_path());
    write_file_atomic(folder_ / name, text);
  }
  void link(const std::string& to, const std::string& name) const {
    std::filesystem::create_symlink(to, folder_ / name);
  }
  static Names names_of(const SyncTree& tree) {
    Names names;
    for (const SyncFile& file : tree.files) names.push_back(file.name);
    return names;
  }
  std::shared_ptr<const SyncTree> tree_now(SyncSource& source) const { return source.tree_since(Clock::now(), {}); }

  const TemporaryFolder folder_;
};

TEST_F(SyncSourceTest, APathIsLeftOutByItselfAndIsNoPattern) {
  for (const char* name : {"run/log", "a/run/log", "a/b/run", "run[1]/log", "run1/log"}) file(name);
  EXPECT_EQ(names_of(read_tree(folder_.path(), {.paths = {"run", "run[1]"}})),
            (Names{"a/b/run", "a/run/log", "run1/log"}));
  EXPECT_EQ(names_of(read_tree(folder_.path(), {.patterns = {"run"}})), (Names{"run1/log", "run[1]/log"}));
  EXPECT_EQ(names_of(read_tree(folder_.path(), {.patterns = {"a/*", "run[1]"}})), (Names{"run/log", "run[1]/log"}));
}

TEST_F(SyncSourceTest, LinksCountAsTheFilesThatTheyLeadToAndOthersAreNamed) {
  file("data/x");
  link("data/x", "file");
  link("data", "folder");
  link("nowhere", "dangling");
  link("loop", "loop");
  const SyncTree tree = read_tree(folder_.path(), {});
  EXPECT_EQ(names_of(tree), (Names{"data/x", "file"}));
  EXPECT_EQ(tree.skipped, (Names{"dangling: a link to no file", "folder: a link to a folder",
                                 "loop: a link that cannot be followed: Too many levels of symbolic links"}));
}

TEST_F(SyncSourceTest, FoldersKeepTheirPermissionsAndTheirOwnerMayWrite) {
  for (const char* name : {"closed/x", "fixed/x", "open/x"}) file(name);
  using std::filesystem::perms;
  std::filesystem::permissions(folder_ / "closed", perms(0700));
  std::filesystem::permissions(folder_ / "fixed", perms(0555));
  std::filesystem::permissions(folder_ / "open", perms(0775));
  std::vector<unsigned> modes;
  for (const SyncFolder& folder : read_tree(folder_.path(), {}).folders) modes.push_back(folder.mode);
  std::filesystem::permissions(folder_ / "fixed", perms(0755));
  EXPECT_EQ(modes, (std::vector<unsigned>{0700, 0755, 0775}));
}

TEST_F(SyncSourceTest, ASourceThatCannotBeReadIsAnErrorWithItsPath) {
  EXPECT_THROW(read_tree(folder_ / "missing", {}), UsageError);
  link("loop", "loop");
  try {
    read_tree(folder_ / "loop/x", {});
    FAIL() << "it was read";
  } catch (const Error& error) {
    EXPECT_EQ(error.what(), (folder_ / "loop/x").string() + ": Too many levels of symbolic links");
  }
}

TEST_F(SyncSourceTest, ALaterHostGetsTheFilesThatAreThereThen) {
  file("a", "1");
  file("b");
  SyncSource source(folder_.path(), {});
  const Clock::time_point begin = Clock::now();
  const auto first = source.tree_since(begin, {});
  EXPECT_EQ(source.tree_since(begin, {}), first) << "hosts that start together share it";
  std::filesystem::remove(folder_ / "b");
  file("a", "2");  // of the same size
  file("c");
  const auto later = tree_now(source);
  EXPECT_EQ(names_of(*later), (Names{"a", "c"}));
  EXPECT_NE(later->files.at(0).sha256, first->files.at(0).sha256);
  EXPECT_EQ(names_of(*first), (Names{"a", "b"})) << "a host that still copies keeps its tree";
}

TEST_F(SyncSourceTest, FilesThatDidNotChangeAreNotReadAgain) {
  file("a");
  SyncSource source(folder_.path(), {});
  std::this_thread::sleep_for(std::chrono::milliseconds(2100));
  const auto first = tree_now(source);
  std::stop_source stop;
  stop.request_stop();
  const auto again = source.tree_since(Clock::now(), stop.get_token());  // reading "a" would end it
  EXPECT_NE(again, first);
  EXPECT_EQ(again->files.at(0).sha256, first->files.at(0).sha256);
}

TEST_F(SyncSourceTest, AStopEndsTheReading) {
  file("a");
  SyncSource source(folder_.path(), {});
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THROW((void)source.tree_since(Clock::now(), stop.get_token()), Stopped);
  EXPECT_EQ(names_of(*tree_now(source)), Names{"a"});
}

}  // namespace
}  // namespace dtrain::launcher
