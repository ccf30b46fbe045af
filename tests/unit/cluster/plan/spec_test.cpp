#include <dtrain/cluster/spec.hpp>

#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>

namespace dtrain::cluster {
namespace {

constexpr const char* kId = "1234abcd-12ab-34cd-56ef-1234567890ab";
const std::string kLead = "arn:aws:kms:eu-west-1:123456789012:";

TEST(KmsKey, HasAnArnAnAliasOrAnId) {
  for (const std::string& key : {std::string(kId), std::string("mrk-0123456789abcdef0123456789abcdef"),
                                 std::string("alias/team/Train_1"), kLead + "key/" + kId, kLead + "alias/training"}) {
    EXPECT_NO_THROW(check_kms_key(key)) << key;
  }
  for (const std::string& key :
       {std::string("alias"), std::string("alias/"), std::string("alias/a b"), std::string("-"),
        std::string("mrk-0123456789ABCDEF0123456789ABCDEF"), std::string(kId) + "0", std::string("alias/aws/ebs"),
        kLead + "alias/aws/ebs", kLead + kId, kLead + "key/mine", std::string("arn:aws:kms::123456789012:key/") + kId,
        std::string("arn:aws:kms:eu-west-1:12345:key/") + kId}) {
    EXPECT_THROW(check_kms_key(key), UsageError) << key;
  }
}

TEST(KmsKey, NamesItsRegionInAnArn) {
  EXPECT_EQ(region_of_kms_key(kLead + "alias/training"), "eu-west-1");
  EXPECT_EQ(region_of_kms_key("alias/training"), "");
  EXPECT_EQ(region_of_kms_key(kId), "");
}

TEST(Spec, HasValuesThatAreInvalidWhateverTheOthersAre) {
  EXPECT_NO_THROW(check_values({}));
  // With the options that an existing cluster has, this may be valid.
  EXPECT_NO_THROW(check_values({.min_workers = 4, .max_price = 1}));
  EXPECT_THROW(check_spec({.min_workers = 4}), UsageError);
  EXPECT_THROW(check_values({.kms_key = "training"}), UsageError);
  EXPECT_THROW(check_values({.shared = "folder"}), UsageError);
  EXPECT_THROW(check_values({.ssh_from = "everywhere"}), UsageError);
  EXPECT_THROW(check_values({.capacity_reservation = "mine"}), UsageError);
}

TEST(Spec, MakesValuesOfTagsThatAllServicesTake) {
  EXPECT_EQ(tag_value("arn:aws:iam::1:user/a_b.c@d=e+f/g h-i"), "arn:aws:iam::1:user/a_b.c@d=e+f/g h-i");
  EXPECT_EQ(tag_value("arn:aws:iam::1:user/Doe,Jane*"), "arn:aws:iam::1:user/Doe_Jane_");
  EXPECT_EQ(tag_value(std::string(300, 'x')), std::string(256, 'x'));
  EXPECT_EQ(tag_value(std::string(255, 'x') + "\u00e9"), std::string(255, 'x'));
}

TEST(Spec, ReadsTheSharedFolder) {
  EXPECT_EQ(shared_of("none").kind, SharedKind::none);
  EXPECT_EQ(shared_of("efs").kind, SharedKind::new_efs);
  EXPECT_EQ(shared_of("fsx").kind, SharedKind::new_lustre);
  EXPECT_EQ(shared_of("fsx:2400").kind, SharedKind::new_lustre);
  EXPECT_EQ(shared_of("/data").kind, SharedKind::path);
  const Shared efs = shared_of("efs:fs-1"), lustre = shared_of("fsx:fs-2");
  EXPECT_EQ(efs.kind, SharedKind::given_efs);
  EXPECT_EQ(efs.id, "fs-1");
  EXPECT_EQ(lustre.kind, SharedKind::given_lustre);
  EXPECT_EQ(lustre.id, "fs-2");
  EXPECT_TRUE(efs.on_efs() && !efs.on_lustre() && lustre.on_lustre() && !lustre.on_efs());
}

TEST(Spec, ReadsTheSharedFolderOfACluster) {
  using Options = std::map<std::string, std::string>;
  EXPECT_EQ(shared_of(Options{}).kind, SharedKind::none);
  EXPECT_EQ(shared_of(Options{{"shared", "efs:fs-1"}}).id, "fs-1");
}

TEST(Spec, ReplacesAHeadNoSoonerThanAwsShowsItsEnd) {
  EXPECT_THROW(check_values({.replace_head_after = std::chrono::minutes(1)}), UsageError);
  EXPECT_THROW(check_values({.replace_head_after = kLeastHeadPatience - std::chrono::seconds(1)}), UsageError);
  EXPECT_NO_THROW(check_values({.replace_head_after = kLeastHeadPatience}));
  EXPECT_NO_THROW(check_values({.replace_head_after = std::chrono::seconds(0)}));
}

TEST(Spec, HasADiskOnEmrWhereNoneIsChosen) {
  Spec spec{.on = Service::emr, .release = "emr-7.1.0"};
  spec.image.clear();
  EXPECT_NO_THROW(check_spec(spec));
  EXPECT_EQ(root_gb_of_emr(spec), kLeastRootGbOfEmr);
  spec.root_gb = kLeastRootGbOfEmr - 1;
  EXPECT_THROW(check_spec(spec), UsageError);
  spec.root_gb = 100;
  EXPECT_EQ(root_gb_of_emr(spec), 100);
}

TEST(Spec, HasNoKmsKeyOnEmr) {
  Spec spec{.root_gb = 100, .kms_key = "alias/training", .on = Service::emr, .release = "emr-7.1.0"};
  spec.image.clear();
  EXPECT_THROW(check_spec(spec), UsageError);
  spec.kms_key.clear();
  EXPECT_NO_THROW(check_spec(spec));
}

}  // namespace
}  // namespace dtrain::cluster
