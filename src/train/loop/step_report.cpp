#include "step_report.hpp"

#include <dtrain/base/error.hpp>

namespace dtrain::train {

static void note_in_ledger(const RunContext& context, const Cursor& place, const data::Batch& batch) {
  if (!context.ledger) return;
  context.ledger->add(place, {batch.sample_ids, static_cast<std::size_t>(batch.n)});
  const std::string complaint = context.ledger->take_complaint();
  if (!complaint.empty())
    context.reporter.tell({WarningReport{complaint + ": the job goes on, the ledger catches up"}});
}

FedBatch load_batch(const RunContext& context, BatchFeed& feed, const data::Slice& slice, const Cursor& place,
                    bool shows) {
  context.membership.progress(elastic::Phase::loading);
  const std::optional<FedBatch> fed = slice.count > 0 ? feed.next() : FedBatch{};
  DTRAIN_CHECK(fed && fed->batch.n == slice.count, "the loader gave another batch than asked for");
  if (shows && slice.count > 0) context.reporter.show_first(fed->batch);
  note_in_ledger(context, place, fed->batch);
  return *fed;
}

double top_k_accuracy_of(const RunContext& context, const backend::StepMetrics& metrics, double count) {
  return context.options.top_k == 0 ? kNotAskedFor : accuracy_of(context.graph, metrics.top_k_correct, count);
}

StepReport step_report(const RunContext& context, const backend::StepMetrics& metrics) {
  StepReport report;
  report.loss = metrics.loss_sum / metrics.count;
  report.accuracy = accuracy_of(context.graph, metrics.correct, metrics.count);
  report.top_k_accuracy = top_k_accuracy_of(context, metrics, metrics.count);
  const std::span<const char* const> parts = nn::loss_parts(context.graph);
  for (std::size_t part = 0; part < parts.size(); ++part)
    report.parts.push_back({parts[part], metrics.parts[part] / metrics.count});
  return report;
}

}  // namespace dtrain::train
