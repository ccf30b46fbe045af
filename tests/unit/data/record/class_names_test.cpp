#include <gtest/gtest.h>

#include <dtrain/data/class_names.hpp>

#include "data/temporary_folder.hpp"

namespace dtrain::data {
namespace {

using Names = std::vector<std::string>;

TEST(ClassNames, StandBesideTheRecordsOfEveryShardAndSplit) {
  TemporaryFolder folder;
  write_file_atomic(folder / "p.pack.json", R"({"classes": ["cat", "dog"]})");
  for (const char* name : {"p.rec", "p_3.rec", "p_train.rec", "p_val.rec", "p_val_12.rec"}) {
    EXPECT_EQ(class_names(std::vector<Path>{folder / name}), (Names{"cat", "dog"})) << name;
  }
  for (const char* name : {"q.rec", "p_other.rec", "p_.rec"}) {
    EXPECT_EQ(class_names(std::vector<Path>{folder / name}), Names{}) << name;
  }
}

TEST(ClassNames, AreNoneWhereTheFileIsDamaged) {
  TemporaryFolder folder;
  write_file_atomic(folder / "p.pack.json", "{");
  EXPECT_EQ(class_names(std::vector<Path>{folder / "p.rec"}), Names{});
  EXPECT_EQ(class_names({}), Names{});
  EXPECT_EQ(class_names(std::vector<Path>{"s3://bucket/p.rec"}), Names{});
}

TEST(ClassNames, FollowTheLabel) {
  const Names names{"cat", "dog"};
  EXPECT_EQ(label_text(1, names), "1 dog");
  EXPECT_EQ(label_text(2, names), "2");
  EXPECT_EQ(label_text(-1, names), "-1");
}

}  // namespace
}  // namespace dtrain::data
