#include "opening.hpp"

#include <fmt/format.h>

#include <dtrain/data/loader.hpp>

namespace dtrain::job {
namespace {

// "1,281,167"
std::string grouped(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, 1, ',');
  return text;
}

std::string counted(std::uint64_t count, std::string_view thing) {
  return fmt::format("{} {}{}", grouped(count), thing, count == 1 ? "" : "s");
}

std::uint64_t trained_records(const OpeningFacts& facts) {
  return data::samples_of_epoch(*facts.training.records, facts.num_examples);
}

std::string images_of(const OpeningData& data) {
  return data.records ? fmt::format("the {} of {}", counted(*data.records, "image"), data.name)
                      : fmt::format("the images of {}", data.name);
}

std::string training_images(const OpeningFacts& facts) {
  if (facts.synthetic) return "synthetic images, to measure the speed";
  const auto& records = facts.training.records;
  if (records && facts.num_examples > 0 && static_cast<std::uint64_t>(facts.num_examples) > *records)
    return fmt::format("{} (--num-examples {} asks for more)", images_of(facts.training), facts.num_examples);
  if (!records || trained_records(facts) == *records) return images_of(facts.training);
  return fmt::format("the first {} of {}", counted(trained_records(facts), "image"), facts.training.name);
}

std::string data_line(const OpeningFacts& facts) {
  const std::string line = "The run trains on " + training_images(facts);
  return facts.validation.name.empty() ? line : line + " and validates on " + images_of(facts.validation);
}

std::string network_line(const OpeningFacts& facts) {
  const std::string images =
      fmt::format("{} images of {} x {} pixels", facts.image.c == 1 ? "grey" : "colour", facts.image.w, facts.image.h);
  return fmt::format(
      "The network {} has {} and {}", facts.network, counted(static_cast<std::uint64_t>(facts.parameters), "parameter"),
      facts.detects
          ? fmt::format("finds objects of {} class{} in {}", facts.classes, facts.classes == 1 ? "" : "es", images)
          : fmt::format("sorts {} into {} classes", images, facts.classes));
}

std::string batch_line(const OpeningFacts& facts) {
  const std::string epochs = counted(static_cast<std::uint64_t>(facts.epochs), "epoch");
  const auto batch = static_cast<std::uint64_t>(facts.batch);
  if (facts.batch_per_worker) {
    return fmt::format("Each step takes {} on each worker; the run has {}", counted(batch, "image"), epochs);
  }
  const std::string step =
      fmt::format("Each step takes {}{}", counted(batch, "image"),
                  facts.shards > 1 ? fmt::format(" in {} logical shards", facts.shards) : std::string());
  if (facts.synthetic || !facts.training.records) return fmt::format("{}; the run has {}", step, epochs);
  const std::uint64_t steps = (trained_records(facts) + batch - 1) / batch;
  return fmt::format("{}, an epoch {}{}, and the run has {}", step, facts.grouped ? "at least " : "",
                     counted(steps, "step"), epochs);
}

std::string device_line(const OpeningFacts& facts) {
  if (facts.gpus.empty()) {
    const std::string cpu = "the CPU with " + counted(static_cast<std::uint64_t>(facts.threads), "thread");
    if (facts.workers == 1) return fmt::format("It computes on {}, in {}", cpu, facts.dtype);
    return fmt::format("It computes in {} workers, each on {}, in {}", facts.workers, cpu, facts.dtype);
  }
  const bool several = facts.gpus.find(',') != std::string::npos;
  return fmt::format("It computes {}on GPU{} {}{}, in {}",
                     facts.workers > 1 ? fmt::format("in {} workers ", facts.workers) : "", several ? "s" : "",
                     facts.gpus, facts.hosts > 1 ? " of each host" : "", facts.dtype);
}

}  // namespace

std::vector<std::string> opening_lines(const OpeningFacts& facts) {
  std::vector<std::string> lines = {data_line(facts), network_line(facts), batch_line(facts), device_line(facts)};
  if (facts.average > 0) {
    lines.push_back(
        fmt::format("Evaluations use the average of the weights over the steps, with decay {:g}", facts.average));
  }
  if (!facts.checkpoint.empty()) {
    lines.push_back(
        fmt::format("The model is saved after each epoch. The log counts epochs from 0 and file names count those that "
                    "are complete: Epoch[{}] ends with \"{}\"",
                    facts.begins_at, facts.checkpoint));
  }
  return lines;
}

}  // namespace dtrain::job
