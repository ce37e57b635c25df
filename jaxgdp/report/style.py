"""The style of HTML reports: black on white, readable at 400 %, and on A4."""

STYLE = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { font: 1rem/1.45 system-ui, "Segoe UI", Helvetica, Arial, sans-serif;
  color: #1a1a1a; background: #fff;
  max-width: 62rem; margin: 0 auto; padding: 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; line-height: 1.2; margin: 0 0 .3rem; }
h2 { font-size: 1.15rem; margin: 1.4rem 0 .4rem; border-bottom: 1px solid #8a8a8a; }
p, ul, dl { margin: .4rem 0; }
ul { padding-left: 1.2rem; }
.verdict { border-left: .35rem solid #0072b2; padding: .2rem 0 .2rem .8rem; font-size: 1.1rem; }
.bar { max-width: 34rem; } .bar svg { width: 100%; height: auto; display: block; }
blockquote { margin: .4rem 0; padding: .5rem .8rem; background: #f2f2f2; }
.small { font-size: .9rem; color: #444; }
.figures { display: flex; flex-wrap: wrap; gap: 1rem; }
figure { flex: 1 1 18rem; max-width: 27rem; margin: 0; }
figure svg { width: 100%; height: auto; display: block; }
figcaption { font-size: .9rem; color: #444; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums;
  margin: .3rem 0; }
caption { text-align: left; font-size: .9rem; color: #444; }
th, td { text-align: left; padding: .15rem .5rem .15rem 0; border-bottom: 1px solid #c8c8c8;
  vertical-align: top; }
thead th { border-bottom: 2px solid #1a1a1a; }
tbody th { font-weight: 400; }
td { white-space: nowrap; }
td.safe { font-weight: 700; }
summary { cursor: pointer; color: #00518a; font-weight: 700; padding: .2rem 0; }
dt { font-weight: 700; }
dd { margin: 0 0 .3rem 1rem; }
code, pre { font-family: ui-monospace, Menlo, Consolas, monospace; font-size: .9rem; }
pre { white-space: pre-wrap; background: #f2f2f2; padding: .5rem; margin: .3rem 0; }
a { color: #00518a; }
a:focus-visible, summary:focus-visible { outline: 3px solid #d55e00; }
@media (max-width: 30rem) { td { white-space: normal; } td.number { overflow-wrap: normal; } }
@media print {
  @page { size: A4; margin: 10mm; }
  body { font-size: 7.4pt; line-height: 1.22; max-width: none; padding: 0; }
  h1 { font-size: 13pt; } h2 { font-size: 9.5pt; margin: .4rem 0 .12rem; break-after: avoid; }
  p, ul, dl { margin: .1rem 0; }
  .verdict { font-size: 8.6pt; } .small, figcaption, caption, code, pre { font-size: 6.8pt; }
  .bar { max-width: 90mm; } blockquote { padding: 0; background: none; font-size: 8.6pt; }
  figure { max-width: 50mm; flex-basis: 46mm; } dt, dd { display: inline; margin: 0; }
  .figures { justify-content: space-around; }
  .columns { columns: 2; column-gap: 8mm; } .columns h2:first-child { margin-top: 0; }
  th, td { padding: 0 .5rem 0 0; } tr, figure, dt { break-inside: avoid; }
  pre { background: none; border: 1px solid #8a8a8a; padding: .2rem; }
  /* words cannot be unfolded on paper; six-digit tables are in the PDF and in JSON */
  details.words::details-content { content-visibility: visible; block-size: auto; }
  details.words summary, details:not(.words) { display: none; }
}
"""
