#include <fmt/format.h>
#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/cluster/prices.hpp>

namespace dtrain::cluster {
namespace {

constexpr const char* kHeading =
    R"("SKU","TermType","Unit","PricePerUnit","Currency","Instance Type","Tenancy","Operating System","CapacityStatus","Pre Installed S/W")";

std::string row(const std::string& type, const std::string& dollars, const std::string& tenancy = "Shared",
                const std::string& system = "Linux", const std::string& term = "OnDemand") {
  return "\"X\",\"" + term + R"(","Hrs",")" + dollars + R"(","USD",")" + type + "\",\"" + tenancy + "\",\"" + system +
         R"(","Used","NA")";
}

PriceList read(const std::vector<std::string>& lines) {
  PriceListReader reader("eu-west-1", "index.csv");
  for (const std::string& line : lines) reader.line(line + "\n");
  return reader.finish();
}

TEST(PriceListReader, KeepsLinuxOnSharedHardwareOnDemand) {
  const PriceList list =
      read({R"("FormatVersion","v1.0")", R"("Publication Date","2026-11-20T18:01:02Z")", kHeading,
            row("g5.xlarge", "1.1230"), row("g5.xlarge", "9", "Dedicated"), row("g5.xlarge", "8", "Shared", "Windows"),
            row("c5.large", "5", "Shared", "Linux", "Reserved"), row("m5.large", "0.107")});
  EXPECT_EQ(list.hourly, (std::map<std::string, double>{{"g5.xlarge", 1.123}, {"m5.large", 0.107}}));
  EXPECT_EQ(list.text(), "on-demand prices of eu-west-1, published 2026-11-20");
  EXPECT_EQ(list.of("p9.huge"), std::nullopt);
}

TEST(PriceListReader, KeepsThePriceOfADisk) {
  const std::string heading = std::string(kHeading) + R"(,"usageType")";
  const auto disk = [](const char* unit, const char* dollars, const char* usage) {
    return fmt::format(R"("X","OnDemand","{}","{}","USD","","","","","","{}")", unit, dollars, usage);
  };
  const PriceList list =
      read({heading, row("m5.large", "1"), disk("GB-Mo", "0.0880000000", "EU-EBS:VolumeUsage.gp3"),
            disk("GB-Mo", "0.11", "EU-EBS:VolumeUsage.gp2"), disk("IOPS-Mo", "0.0055", "EU-EBS:VolumeP-IOPS.gp3")});
  EXPECT_EQ(list.disk_gigabyte_month, 0.088);
  EXPECT_EQ(read({kHeading, row("m5.large", "1")}).disk_gigabyte_month, std::nullopt);
}

TEST(PriceListReader, APriceOfNothingIsUnknown) {
  EXPECT_EQ(read({kHeading, row("g5.xlarge", "0.0000000000"), row("m5.large", "1")}).of("g5.xlarge"), std::nullopt);
}

TEST(PriceListReader, RefusesWhatIsNoPriceList) {
  EXPECT_THROW(read({"<html>", "</html>"}), DataError);
  EXPECT_THROW(read({R"("SKU","TermType")"}), DataError);
  EXPECT_THROW(read({kHeading, row("g5.xlarge", "8", "Shared", "Windows")}), DataError);
}

TEST(BuiltInPrices, AreThoseOfOneRegion) {
  EXPECT_EQ(built_in_prices().text(), "on-demand prices of us-east-1");
  EXPECT_EQ(built_in_prices().of("c5.large"), 0.085);
}

}  // namespace
}  // namespace dtrain::cluster
