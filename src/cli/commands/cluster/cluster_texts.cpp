#include <fmt/format.h>

#include <dtrain/base/text.hpp>
#include <dtrain/base/with_flags.hpp>

#include "cluster_cloud.hpp"

namespace dtrain::cli {

Json hourly_json(const cluster::Cost& cost) {
  return cost.hourly == 0 && !cost.unpriced.empty() ? Json() : Json(cost.hourly);
}

Json so_far_json(const cluster::Fleet& fleet, const cluster::PriceList& prices) {
  const cluster::Cost cost = cluster::cost_of(fleet, prices);
  return cost.hourly == 0 && !cost.unpriced.empty() ? Json() : Json(cluster::cost_so_far(fleet, prices));
}

void warn_of_other_region(const cluster::PriceList& prices, const net::AwsCalls& aws, Reporter& reporter) {
  if (prices.region == aws.region()) return;
  reporter.warn(
      fmt::format("the prices are those of {}; dtrain cluster types --region {} --update-prices fetches those "
                  "of {}",
                  prices.region, aws.region(), aws.region()));
}

Json unpriced_json(const cluster::Cost& cost) { return json_texts(cost.unpriced); }

Json stopped_json(const cluster::StoppedDisks& disks) {
  if (disks.machines == 0) return {};
  return Json::object({{"machines", disks.machines},
                       {"disk_gb", disks.gigabytes},
                       {"dollars_per_month", disks.monthly ? Json(*disks.monthly) : Json()}});
}

Json node_json(const cluster::Node& node) {
  return Json::object({{"name", node.name},
                       {"role", node.role == cluster::Role::head ? "head" : "worker"},
                       {"base", node.base},
                       {"instance_id", node.instance_id},
                       {"state", node.state},
                       {"private_ip", node.private_ip},
                       {"public_ip", node.public_ip},
                       {"zone", node.zone},
                       {"type", node.type},
                       {"weight", node.weight},
                       {"market", enum_name(cluster::kMarketNames, node.market)},
                       {"elastic_status", node.elastic_status},
                       {"launch_time", node.launch_time}});
}

Json attempts_json(const cluster::Launched& launched) {
  Json list = Json::array();
  for (const cluster::Attempt& one : launched.attempts) {
    list.push_back(Json::object({{"market", enum_name(cluster::kMarketNames, one.pool.market)},
                                 {"type", one.pool.type},
                                 {"zone", one.pool.zone},
                                 {"wanted", one.wanted},
                                 {"got", one.got},
                                 {"code", one.code},
                                 {"message", one.message}}));
  }
  return list;
}

Json plan_json(const cluster::ClusterRequest& request, const cluster::Account& account, const cluster::Plan& plan,
               const cluster::Fleet& fleet) {
  Json actions = Json::array(), notes = Json::array(), zones = Json::array(), quotas = Json::array();
  for (const cluster::Action& one : plan.actions) {
    actions.push_back(Json::object({{"step", enum_name(cluster::kStepNames, one.step)}, {"what", one.what}}));
  }
  for (const std::string& note : plan.notes) notes.push_back(with_flags(note));
  for (const cluster::Subnet& subnet : account.subnets) zones.push_back(subnet.zone);
  for (const cluster::QuotaNeed& one : plan.quotas) {
    quotas.push_back(Json::object({{"quota", one.quota},
                                   {"vcpus", one.vcpus},
                                   {"limit", one.limit ? Json(*one.limit) : Json()},
                                   {"enough", one.enough()}}));
  }
  return Json::object({{"schema", "dtrain.cluster-plan/1"},
                       {"cluster", request.name},
                       {"region", account.region},
                       {"account", account.number},
                       {"person", account.person},
                       {"credentials", account.credentials},
                       {"vpc", account.vpc_id},
                       {"zones", zones},
                       {"image", account.image.id},
                       {"image_name", account.image.name},
                       {"kms_key", account.kms_key.empty() ? Json() : Json(account.kms_key)},
                       {"instance_types", json_texts(request.spec.instance_types)},
                       {"instances", request.spec.workers + 1},
                       {"there", fleet.nodes.size()},
                       {"actions", actions},
                       {"dollars_per_hour", hourly_json(plan.cost)},
                       {"unpriced", unpriced_json(plan.cost)},
                       {"quotas", quotas},
                       {"notes", notes}});
}

void answer_plan(const cluster::ClusterRequest& request, const cluster::Account& account, const cluster::Plan& plan,
                 Reporter& reporter) {
  reporter.answer(fmt::format("cluster {}: {} and a head in {}, account {}", request.name,
                              count_text(request.spec.workers, "worker"), account.region, account.number));
  if (!account.image.id.empty())
    reporter.answer(fmt::format("image {} ({}), login {}", account.image.id, account.image.name, account.image.login));
  if (!account.kms_key.empty()) reporter.answer(fmt::format("disks are encrypted with {}", account.kms_key));
  for (const cluster::Action& one : plan.actions) reporter.answer("  " + one.what);
  if (plan.actions.empty()) reporter.answer("  nothing to create");
  reporter.answer(cost_text(plan.cost) + " an hour on demand");
  for (const cluster::QuotaNeed& one : plan.quotas) {
    reporter.answer(fmt::format("vCPUs of kind {}: {} of {}", one.quota, one.vcpus,
                                one.limit ? fmt::format("{:.0f}", *one.limit) : "an unknown limit"));
  }
  for (const std::string& note : plan.notes) reporter.warn(note);
}

}  // namespace dtrain::cli
