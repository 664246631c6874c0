/** Words of three letters or more that stand in every text, and so tell nothing about any. */
const WORDS = `about above after again against all also although always among and another any are aren because been
before being below between both but can cannot could did does doesn doing don done down during each either else even
every few for from further get gets got had has hasn have having her here hers him his how however into isn its itself
just least less let like made make makes many may might more most much must near need needs neither never nor not now
off often once one only onto other others our out over own per perhaps rather same see she should since some still such
than that the their them then there therefore these they thing things this those though through thus too two under until
upon use used uses using very was wasn way well were what when where whether which while who whole whom whose why will
with within without would yet you your yours`;

/** Whether a word says nothing about the text that it stands in. */
export const isStopWord: (word: string) => boolean = (() => {
  const words = new Set(WORDS.split(/\s+/));
  return (word) => words.has(word);
})();
