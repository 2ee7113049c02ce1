// How the site's search ranks pages: what somebody does stands before how it was decided. Sphinx reads this in place of
// its own Scorer, whose numbers are kept.
var Scorer = {
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
  // A result is [page, title, anchor, description, score, file, kind].
  score: ([page, , , , score]) => {
    if (/(^|\/)decisions\//.test(page)) return score - 30;
    if (/^(how-to|tutorials)\/|^(install|first|faq|uninstall|upgrade|troubleshooting|headroom|events)/.test(page)) return score + 10;
    return /^(lab|upstream|reference)\//.test(page) ? score - 5 : score;
  },
};
