#include <dtrain/cluster/regions.hpp>

#include <gtest/gtest.h>

#include <map>

#include <dtrain/base/error.hpp>
#include <dtrain/base/files.hpp>
#include <dtrain/cluster/wish.hpp>

#include "common/set_variable.hpp"

namespace dtrain::cluster {
namespace {

using Names = std::vector<std::string>;

Fleet begun() { return {.name = "demo", .group = SecurityGroup{.id = "sg-1"}}; }
Fleet complete() {
  Fleet fleet = begun();
  fleet.group->tags[tag::kWish] = "{}";
  return fleet;
}

TEST(Regions, AreAListWithoutRepetition) {
  EXPECT_EQ(regions_in(""), Names{});
  EXPECT_EQ(regions_in("us-east-1"), Names{"us-east-1"});
  EXPECT_EQ(regions_in("us-east-1, eu-west-1"), (Names{"us-east-1", "eu-west-1"}));
  for (const char* text : {",", "us-east-1,", "a,,b", "Europe", "a b", "a,a", "us-east-1a", "us-west-2-lax-1a"}) {
    EXPECT_THROW(regions_in(text), UsageError) << text;
  }
}

TEST(Regions, AreNamedInTheRefusalOfAZone) {
  try {
    regions_in("eu-west-1,us-gov-west-1b");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_EQ(error.what(), std::string("setting 'region' 'eu-west-1,us-gov-west-1b' names the availability zone "
                                        "us-gov-west-1b"));
    EXPECT_NE(error.hint().find("its region is us-gov-west-1;"), std::string::npos);
  }
}

TEST(Regions, ThatHaveTheClusterComeBeforeThoseWithRemains) {
  std::map<std::string, Fleet> there{{"a", {}}, {"b", begun()}, {"c", complete()}};
  const auto read = [&](const std::string& region) { return there[region]; };
  EXPECT_EQ(region_with({"a", "b", "c"}, read), "c");
  EXPECT_EQ(region_with({"a", "b"}, read), "b");
  EXPECT_EQ(region_with({"a"}, read), "");
  EXPECT_EQ(region_with({}, read), "");
}

net::AwsError error_of(const char* what, net::AwsProblem problem) {
  net::AwsError::Facts facts;
  facts.problem = problem;
  return {what, "", facts};
}

TEST(Regions, ThatRefuseHideNoClusterOfAnotherOne) {
  std::map<std::string, Fleet> there{{"b", {}}, {"c", complete()}};
  const auto read = [&](const std::string& region) {
    if (region == "a") throw error_of("an explicit deny", net::AwsProblem::denied);
    if (region == "d") throw error_of("unavailable", net::AwsProblem::transient);
    return there[region];
  };
  Names said;
  const auto note = [&](const std::string& line) { said.push_back(line); };
  EXPECT_EQ(answering_region_with({"a", "b", "c"}, {"b", "c"}, read, note), "c");
  EXPECT_EQ(said, Names{"a cannot be asked: an explicit deny"});
  EXPECT_EQ(answering_region_with({"b"}, {"b"}, read, note), "");
  EXPECT_EQ(answering_region_with({"a", "b"}, {"b"}, read, note), "");
  EXPECT_THROW(answering_region_with({"b", "a"}, {"a"}, read, note), RemoteError);
  EXPECT_THROW(answering_region_with({"a"}, {"a"}, read, note), RemoteError);
  EXPECT_THROW(answering_region_with({"d", "c"}, {"c"}, read, note), net::AwsError);  // the cluster may be there
}

TEST(Regions, AreAskedFromTheUsualOneOnWhereOthersAreRemembered) {
  const ScratchFolder home;
  const SetVariable of_user("HOME", home.path().string());
  net::AwsSettings settings;
  settings.region = "eu-west-1";
  EXPECT_EQ(regions_to_ask("demo", settings), Names{});
  remember_regions("demo", {"us-east-1", "eu-west-1"});
  EXPECT_EQ(regions_to_ask("demo", settings), (Names{"eu-west-1", "us-east-1"}));
  remember_regions("demo", {"eu-west-1"});
  EXPECT_EQ(regions_to_ask("demo", settings), Names{"eu-west-1"});
  remember_regions("demo", {"us-east-1"});
  EXPECT_EQ(regions_to_ask("demo", settings), (Names{"eu-west-1", "us-east-1"}));
}

TEST(Regions, AreOfAnAccountUntilAnotherOneMakesSomethingThere) {
  const ScratchFolder home;
  const SetVariable of_user("HOME", home.path().string());
  const auto account = [](const char* region) { return remembered_account("demo", region); };
  remember_regions("demo", {"us-east-1", "eu-west-1"}, "111111111111");
  EXPECT_EQ(account("eu-west-1"), "111111111111");
  EXPECT_EQ(account("us-west-2"), "");
  remember_regions("demo", {"eu-west-1", "us-west-2"});
  EXPECT_EQ(account("eu-west-1"), "111111111111") << "it is remembered on";
  EXPECT_EQ(account("us-west-2"), "") << "nothing says it";
  remember_regions("demo", {"eu-west-1", "us-west-2", "us-east-1"}, "222222222222");
  EXPECT_EQ(account("us-east-1"), "222222222222");
  EXPECT_EQ(account("eu-west-1") + account("us-west-2"), "") << "another account may have something there";
  write_file_atomic(home.path() / ".dtrain/clusters/demo/regions.json",
                    R"({"schema": "dtrain.cluster-regions/1", "regions": ["eu-west-1"]})");
  EXPECT_EQ(remembered_regions("demo"), Names{"eu-west-1"}) << "an earlier version wrote it";
  EXPECT_EQ(account("eu-west-1"), "");
}

TEST(Regions, KnowWhatAnInterruptedUpLeft) {
  EXPECT_TRUE(is_only_begun(begun()));
  EXPECT_FALSE(is_only_begun(complete()));
  EXPECT_FALSE(is_only_begun({.name = "demo"}));
  // Clusters of earlier versions have no wish.
  Fleet earlier = begun();
  earlier.group->tags[tag::kLaunches] = "1";
  EXPECT_FALSE(is_only_begun(earlier));
  Fleet adopted = begun();
  adopted.nodes.push_back({.instance_id = "i-1", .tags = {{tag::kAdopted, "yes"}}});
  EXPECT_FALSE(is_only_begun(adopted));
  Fleet emr = begun();
  emr.options["on"] = "emr";
  EXPECT_FALSE(is_only_begun(emr));
}

TEST(Regions, AreOneForWhatBelongsToOne) {
  EXPECT_NO_THROW(refuse_ties({}));
  EXPECT_NO_THROW(refuse_ties({.shared = "efs", .kms_key = "alias/training"}));
  EXPECT_THROW(refuse_ties({.shared = "efs:fs-1"}), UsageError);
  EXPECT_THROW(refuse_ties({.shared = "fsx:fs-1"}), UsageError);
  EXPECT_THROW(refuse_ties({.subnet = "subnet-1"}), UsageError);
}

TEST(Regions, AreOneWhereAFileSystemIsKept) {
  Account account{.region = "eu-west-1"};
  const Spec spec{.shared = "efs"};
  EXPECT_NO_THROW(refuse_kept_storage(account, spec, begun()));
  account.file_system = FileSystem{.id = "fs-1", .own = true, .bytes = 6'144};
  EXPECT_THROW(refuse_kept_storage(account, spec, {.name = "demo"}), UsageError);
  EXPECT_THROW(refuse_kept_storage(account, spec, begun()), UsageError) << "an earlier version made it";
  account.file_system->group = "sg-0";
  EXPECT_THROW(refuse_kept_storage(account, spec, begun()), UsageError) << "an earlier cluster made it";
  account.file_system->group = "sg-1";
  EXPECT_NO_THROW(refuse_kept_storage(account, spec, begun()));
  EXPECT_THROW(refuse_kept_storage(account, spec, complete()), UsageError);
  account.file_system->bytes = 3e9;
  EXPECT_THROW(refuse_kept_storage(account, spec, begun()), UsageError) << "the user has written to it";
  EXPECT_NO_THROW(refuse_kept_storage(account, {.shared = "/nfs"}, begun()));
}

TEST(Regions, LustreOfAnInterruptedUpHasNoContent) {
  Account account{.region = "eu-west-1"};
  account.file_system = FileSystem{.id = "fs-1", .own = true, .bytes = 1.2e12, .lustre = true, .group = "sg-1"};
  EXPECT_NO_THROW(refuse_kept_storage(account, {.shared = "fsx"}, begun()));
  EXPECT_THROW(refuse_kept_storage(account, {.shared = "fsx"}, {.name = "demo"}), UsageError);
  account.file_system->own = false;
  EXPECT_THROW(refuse_kept_storage(account, {.shared = "fsx"}, begun()), UsageError);
}

TEST(Regions, AreLeftToAnotherUpThatHasFinishedOrHasMachines) {
  const auto with = [](Fleet fleet, const char* id, const char* state) {
    fleet.nodes.push_back({.instance_id = id, .state = state});
    return fleet;
  };
  const Fleet own = with(begun(), "i-1", "running");
  EXPECT_FALSE(is_of_others(own, own, {}, false));
  EXPECT_FALSE(is_of_others({.name = "demo"}, own, {}, false));
  EXPECT_TRUE(is_of_others(complete(), own, {}, false));
  EXPECT_FALSE(is_of_others(complete(), own, {}, true)) << "this `up` wrote the wish";
  EXPECT_TRUE(is_of_others(with(own, "i-2", "pending"), own, {}, true));
  EXPECT_FALSE(is_of_others(with(own, "i-2", "pending"), own, {"i-2"}, true)) << "it was ended a moment ago";
  EXPECT_FALSE(is_of_others(with(own, "i-2", "shutting-down"), own, {}, false));
}

}  // namespace
}  // namespace dtrain::cluster
