#include <gtest/gtest.h>

#include <dtrain/cluster/types.hpp>

namespace dtrain::cluster {
namespace {

MachineType machine(const std::string& name, int gpus, const std::string& gpu, double memory = 24) {
  return {.name = name,
          .vcpus = 4,
          .gpus = gpus,
          .gpu_name = gpu,
          .architecture = "x86_64",
          .gpu_memory_gib = memory,
          .zones = {"a"}};
}

TypeOffer offer(const std::string& name, int gpus, const std::string& gpu, std::optional<double> on_demand,
                std::optional<double> spot = {}, double memory = 24) {
  TypeOffer made{.type = machine(name, gpus, gpu, memory), .on_demand = on_demand, .spot = spot};
  made.why_not = why_not_trained_on(made.type);
  return made;
}

std::vector<std::string> names(const std::vector<TypeOffer>& offers) {
  std::vector<std::string> all;
  for (const TypeOffer& one : offers) all.push_back(one.type.name);
  return all;
}

using Names = std::vector<std::string>;

TEST(WhyNotTrainedOn, NamesTheGpuAndWhatItLacks) {
  EXPECT_EQ(why_not_trained_on(machine("g5.xlarge", 1, "A10G")), "");
  EXPECT_EQ(why_not_trained_on(machine("c5.large", 0, "")), "");
  EXPECT_EQ(why_not_trained_on(machine("g4dn.xlarge", 1, "T4")),
            "its GPU, a T4, has compute capability 7.5, and dtrain needs 8.0 or newer");
  EXPECT_EQ(why_not_trained_on(machine("g4ad.xlarge", 1, "Radeon Pro V520")),
            "its GPU, a Radeon Pro V520, is not NVIDIA's");
  EXPECT_EQ(why_not_trained_on(machine("z9.large", 1, "Z1")), "dtrain does not know its GPU, a Z1");
  MachineType arm = machine("c7g.large", 0, "");
  arm.architecture = "arm64";
  EXPECT_EQ(why_not_trained_on(arm), "its processor is arm64, and dtrain runs on x86_64");
}

TEST(FittingOffers, AreSortedByPriceWithTheUselessAndTheUnknownLast) {
  const std::vector<TypeOffer> all{offer("g4dn.xlarge", 1, "T4", 0.5), offer("g7.new", 1, "L4", {}),
                                   offer("g5.xlarge", 1, "A10G", 1.0), offer("g6.xlarge", 1, "L4", 0.8),
                                   offer("c5.large", 0, "", 0.085)};
  EXPECT_EQ(names(fitting_offers(all, {})), (Names{"g6.xlarge", "g5.xlarge", "g7.new", "g4dn.xlarge"}));
  EXPECT_EQ(names(fitting_offers(all, {.gpus = 0})).front(), "c5.large");
}

TEST(FittingOffers, ALimitLeavesOutTypesWithoutAPrice) {
  const std::vector<TypeOffer> all{offer("g7.new", 1, "L4", {}), offer("g5.xlarge", 1, "A10G", 1.0, 0.4),
                                   offer("g6.xlarge", 1, "L4", 0.8)};
  EXPECT_EQ(names(fitting_offers(all, {.max_price = 0.5})), (Names{"g5.xlarge"}));
}

TEST(FittingOffers, CountGpusAndTheirMemory) {
  const std::vector<TypeOffer> all{offer("a", 1, "A10G", 1.0), offer("b", 4, "A10G", 2.0),
                                   offer("c", 8, "A100", 9.0, {}, 40)};
  EXPECT_EQ(names(fitting_offers(all, {.gpus = 2})), (Names{"b", "c"}));
  EXPECT_EQ(names(fitting_offers(all, {.gpu_memory_gib = 32})), (Names{"c"}));
}

TEST(TypeOffer, CountsMachinesThatTheQuotaLeaves) {
  TypeOffer one = offer("g5.xlarge", 1, "A10G", 1.0);
  EXPECT_EQ(one.machines_left(), std::nullopt);
  one.vcpus_left = 11;
  EXPECT_EQ(one.machines_left(), 2);
  one.vcpus_left = -4;
  EXPECT_EQ(one.machines_left(), 0);
}

}  // namespace
}  // namespace dtrain::cluster
