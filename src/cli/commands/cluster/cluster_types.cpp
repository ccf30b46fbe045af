#include <fmt/format.h>

#include <cmath>

#include <dtrain/base/text.hpp>
#include <dtrain/cluster/types.hpp>

#include "cli/table.hpp"
#include "cluster_cloud.hpp"
#include "keep/commands.hpp"

namespace dtrain::cli {
namespace {

struct TypesCommand {
  config::ClusterPlace place;
  int gpus = 1;
  double gpu_memory = 0, max_price = 0;
  bool update_prices = false, all = false;
};

void bind(config::OptionSet& set, TypesCommand& options) {
  set.group("Machines");
  set.add("--gpus", options.gpus, "N", "least number of GPUs; 0 lists machines without GPUs too", config::at_least(0));
  set.add("--gpu-memory", options.gpu_memory, "GIB", "least memory of each GPU, in GiB", config::at_least(0));
  set.add("--max-price", options.max_price, "USD",
          "highest price in US dollars an hour, on demand or on spot; types without a known price are left out; 0 for "
          "no limit",
          config::at_least(0));
  set.add("--all", options.all, "list also types on which dtrain cannot train, with the reason");
  set.group("Prices");
  set.add("--update-prices", options.update_prices,
          "first download AWS's price list of the region, of some hundred MB, and keep its prices in the cache folder "
          "for all commands; without it, prices are those of the last download, else dtrain's table of us-east-1")
      .flag_only = true;
  set.group("Account");
  config::bind_account(set, options.place);
}

std::string dollars_text(const std::optional<double>& dollars) {
  return dollars ? fmt::format("${:.4f}", *dollars) : "unknown";
}

std::string gpus_text(const cluster::MachineType& type) {
  if (type.gpus == 0) return "none";
  const std::string memory = type.gpu_memory_gib > 0 ? fmt::format(", {:.0f} GiB", type.gpu_memory_gib) : "";
  return fmt::format("{} x {}{}", type.gpus, type.gpu_name, memory);
}

std::string left_text(const cluster::TypeOffer& offer) {
  const auto left = offer.machines_left();
  return left ? std::to_string(*left) : "unknown";
}

Json number_or_null(const std::optional<double>& number) { return number ? Json(*number) : Json(); }

Json offer_json(const cluster::TypeOffer& offer) {
  const auto left = offer.machines_left();
  return Json::object({{"type", offer.type.name},
                       {"vcpus", offer.type.vcpus},
                       {"gpus", offer.type.gpus},
                       {"gpu", offer.type.gpu_name},
                       {"gpu_memory_gib", offer.type.gpu_memory_gib},
                       {"compute_capability", offer.capability},
                       {"trains", offer.why_not.empty()},
                       {"why_not", offer.why_not},
                       {"efa", offer.type.efa},
                       {"dollars_per_hour", number_or_null(offer.on_demand)},
                       {"spot_dollars_per_hour", number_or_null(offer.spot)},
                       {"quota", offer.quota},
                       {"quota_vcpus_left", number_or_null(offer.vcpus_left)},
                       {"quota_machines_left", left ? Json(*left) : Json()},
                       {"zones", json_texts(offer.type.zones)}});
}

void answer_table(const std::vector<cluster::TypeOffer>& offers, Reporter& reporter) {
  std::vector<std::vector<std::string>> rows{
      {"TYPE", "VCPUS", "GPUS", "CAPABILITY", "ON DEMAND", "SPOT", "QUOTA LEFT", "ZONES", "TRAINS"}};
  for (const cluster::TypeOffer& one : offers) {
    std::vector<std::string> zones;
    // "us-east-1a" is one of the region that the command was asked for, so its letter says all.
    for (const std::string& zone : one.type.zones) zones.push_back(zone.substr(zone.size() - 1));
    rows.push_back({one.type.name, std::to_string(one.type.vcpus), gpus_text(one.type),
                    one.capability.empty() ? "-" : one.capability, dollars_text(one.on_demand), dollars_text(one.spot),
                    left_text(one), join(zones, ","), one.why_not.empty() ? "yes" : "no: " + one.why_not});
  }
  answer_rows(rows, reporter);
}

cluster::PriceList prices_for(const TypesCommand& options, ClusterCloud& cloud, Reporter& reporter) {
  if (!options.update_prices) return cloud.prices();
  std::uint64_t told = 0;
  constexpr std::uint64_t kStep = std::uint64_t{64} << 20;
  const auto progress = [&](std::uint64_t done, std::uint64_t total) {
    if (done < told + kStep) return;
    told = done;
    reporter.note(fmt::format("price list: {} of {}", format_bytes(done), total ? format_bytes(total) : "unknown"));
  };
  cluster::PriceList list = cluster::fetch_prices(cloud.aws().region(), cloud.settings(), progress);
  reporter.note(fmt::format("{} types have a price in the list of {}", list.hourly.size(), list.region));
  return list;
}

ExitCode act(const TypesCommand& options, const config::OptionSet&, Reporter& reporter) {
  ClusterCloud cloud(options.place, reporter, ClusterCloud::Scope::region);
  const cluster::PriceList prices = prices_for(options, cloud, reporter);
  cluster::TypeWish wish{.gpus = options.gpus, .gpu_memory_gib = options.gpu_memory};
  if (options.max_price > 0) wish.max_price = options.max_price;
  cluster::TypeOffers found = cluster::read_type_offers(cloud.aws(), wish, prices);
  std::size_t refused = 0;
  if (!options.all) refused = std::erase_if(found.offers, [](const auto& one) { return !one.why_not.empty(); });
  if (reporter.json()) {
    Json types = Json::array();
    for (const cluster::TypeOffer& one : found.offers) types.push_back(offer_json(one));
    reporter.answer_json(Json::object({{"schema", "dtrain.cluster-types/1"},
                                       {"region", cloud.aws().region()},
                                       {"prices_of", prices.region},
                                       {"prices_published", prices.published},
                                       {"spot_why_not", found.spot_why_not},
                                       {"left_out", refused},
                                       {"types", types}}));
    return ExitCode::ok;
  }
  if (found.offers.empty()) {
    reporter.answer(fmt::format("no type in {} fits{}", cloud.aws().region(), refused ? " and trains" : ""));
  } else {
    answer_table(found.offers, reporter);
  }
  if (refused > 0)
    reporter.note(fmt::format("{} more types fit, but dtrain cannot train on them: --all lists them", refused));
  reporter.note(prices.text() + "; spot prices are the median of the zones at the moment");
  warn_of_other_region(prices, cloud.aws(), reporter);
  if (!found.spot_why_not.empty()) reporter.note("spot prices are unknown: " + found.spot_why_not);
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_cluster_types() {
  auto command = make_command<TypesCommand>(
      "cluster types", "list the types of machines of a region, their prices, and whether dtrain can train on them",
      act);
  command->examples = {"dtrain cluster types --gpus 4 --gpu-memory 24", "dtrain cluster types --max-price 2 --all",
                       "dtrain cluster types --region eu-west-1 --update-prices"};
  command->see_also = {"cluster plan", "cluster up", "cluster cost"};
  return command;
}

}  // namespace dtrain::cli
