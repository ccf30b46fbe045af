#include "plan/boot.hpp"

#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>
#include <dtrain/cluster/change.hpp>

namespace dtrain::cluster {
namespace {

std::string problem_with(std::size_t options, std::size_t tags) {
  ClusterRequest request{.name = "demo", .bundle_sha256 = std::string(64, 'a')};
  for (std::size_t i = 0; i < options; ++i) request.options["option-" + std::to_string(i)] = "x";
  Account account;
  for (std::size_t i = 0; i < tags; ++i) account.tags["tag-" + std::to_string(i)] = "x";
  try {
    check_request(request, account);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

// EC2 takes 50 tags for a group.
TEST(CheckRequest, LeavesRoomForTheTagsThatComeLaterAndThoseOfTheUser) {
  EXPECT_EQ(problem_with(24, 0), "");
  EXPECT_EQ(problem_with(25, 0),
            "the options of cluster demo take 25 tags of its security group, and EC2 leaves room for 24");
  EXPECT_EQ(problem_with(14, 10), "");
  EXPECT_EQ(problem_with(15, 10),
            "the options of cluster demo take 15 tags of its security group, and EC2 leaves room for 14 beside 10 of "
            "setting 'tag'");
}

TEST(BootScript, HasTheAddressOfAMountTarget) {
  ClusterRequest request{.name = "demo", .bundle_sha256 = std::string(64, 'a')};
  request.admission = request.bundle_sha256;
  request.spec.shared = "efs";
  FileSystem system{.id = "fs-1"};
  const auto script = [&] { return boot_script(request, {}, NodeBoot::Role::worker, "10.0.0.1", system); };
  EXPECT_NE(script().find("\nmount_target=''\n"), std::string::npos);
  system.mount_targets.push_back({.zone = "a", .address = "172.31.7.7"});
  system.mount_targets.push_back({.zone = "b", .address = "172.31.8.8"});
  EXPECT_NE(script().find("\nmount_target=172.31.7.7\n"), std::string::npos);
}

TEST(CheckRequest, RefusesATagThatAnotherServiceOfTheClusterDoesNotTake) {
  const auto fits = [](const Spec& spec) {
    try {
      check_request({.name = "demo", .spec = spec, .bundle_sha256 = std::string(64, 'a')}, {});
      return true;
    } catch (const UsageError&) {
      return false;
    }
  };
  const std::map<std::string, std::string> plain{{"team", "Größe 7_.:/=+-@"}}, other{{"team", "R&D"}};
  EXPECT_TRUE(fits({.shared = "efs", .tags = plain}));
  EXPECT_TRUE(fits({.tags = other}));
  EXPECT_TRUE(fits({.shared = "efs:fs-1", .tags = other}));
  EXPECT_FALSE(fits({.shared = "efs", .tags = other}));
  EXPECT_FALSE(fits({.shared = "fsx", .tags = other}));
  EXPECT_FALSE(fits({.elastic_role = "own", .tags = other}));
  EXPECT_FALSE(fits({.heal = true, .tags = other}));
}

}  // namespace
}  // namespace dtrain::cluster
